// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"crypto/rand"
	"crypto/sha1" // #nosec G505 -- what MariaDB's plug-in is made of
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"coolops.cn/database-manager/internal/plan"
)

// What a server keeps of a password is computed here, from the password: so that
// it can be compared with no login, and set without being sent.

// MySQL's caching_sha2_password keeps "$A$005$", a salt of 20 bytes, and what
// the SHA-256 variant of crypt makes of both, in 5 times 1000 rounds.
const (
	shaCryptPrefix = "$A$"
	saltLength     = 20
	shaCryptRounds = 5
)

// maxPasswordLength is how many bytes a password of MySQL may have: over a
// connection without TLS a client sends it, and a NUL, as one block of RSA.
const maxPasswordLength = 213

// mysqlAccount asks for one text: the account's plug-in, whether it is locked,
// whether its password has expired, whether it has no other one, and the
// verifier as hexadecimal digits, since its salt may be any bytes.
const mysqlAccount = `(SELECT CONCAT_WS(' ', plugin, account_locked, password_expired, User_attributes->'$.additional_password' IS NULL, ` +
	`HEX(authentication_string)) FROM mysql.user WHERE User = ? AND Host = '%')`

// mysqlHasPassword tells whether an account, as mysqlAccount gives it, has a
// password and no other.
func mysqlHasPassword(account, password string) bool {
	if len(password) > maxPasswordLength {
		return false
	}
	digits, isUsual := strings.CutPrefix(account, "caching_sha2_password N N 1 ")
	verifier, err := hex.DecodeString(digits)
	if !isUsual || err != nil || len(verifier) < len(shaCryptPrefix)+4+saltLength {
		return false
	}
	thousands, salt, isVerifier := strings.Cut(strings.TrimPrefix(string(verifier), shaCryptPrefix), "$")
	rounds, err := strconv.ParseUint(thousands, 16, 12)
	if !isVerifier || err != nil || len(salt) < saltLength {
		return false
	}
	computed := shaCryptVerifier(password, salt[:saltLength], int(rounds))
	return subtle.ConstantTimeCompare(verifier, []byte(computed)) == 1
}

// mysqlVerifier makes a verifier with a new salt, which is letters and digits.
func mysqlVerifier(password string) string {
	return shaCryptVerifier(password, rand.Text()[:saltLength], shaCryptRounds)
}

func shaCryptVerifier(password, salt string, thousands int) string {
	return fmt.Sprintf("%s%03X$%s%s", shaCryptPrefix, thousands, salt, shaCrypt([]byte(password), []byte(salt), 1000*thousands))
}

// shaCrypt is the SHA-256 variant of crypt: https://www.akkadia.org/drepper/SHA-crypt.txt.
func shaCrypt(password, salt []byte, rounds int) string {
	second := sum(password, salt, password)
	first := append(append([]byte{}, password...), salt...)
	first = append(first, repeat(second, len(password))...)
	for bits := len(password); bits > 0; bits >>= 1 {
		if bits&1 == 1 {
			first = append(first, second...)
		} else {
			first = append(first, password...)
		}
	}
	digest := sum(first)
	p := repeat(sum(repeat(password, len(password)*len(password))), len(password))
	s := repeat(sum(repeat(salt, len(salt)*(16+int(digest[0])))), len(salt))
	for i := range rounds {
		round := digest
		if i%2 == 1 {
			round = p
		}
		parts := [][]byte{round}
		if i%3 != 0 {
			parts = append(parts, s)
		}
		if i%7 != 0 {
			parts = append(parts, p)
		}
		if i%2 == 1 {
			parts = append(parts, digest)
		} else {
			parts = append(parts, p)
		}
		digest = sum(parts...)
	}
	return encodeCrypt(digest)
}

func sum(parts ...[]byte) []byte {
	hash := sha256.New()
	for _, part := range parts {
		hash.Write(part)
	}
	return hash.Sum(nil)
}

// repeat is a text of that length that repeats another one.
func repeat(text []byte, length int) []byte {
	repeated := make([]byte, length)
	for i := range repeated {
		repeated[i] = text[i%len(text)]
	}
	return repeated
}

// encodeCrypt writes a digest as crypt does: three bytes, in an order of its own,
// become four characters, and the last two become three.
func encodeCrypt(digest []byte) string {
	const alphabet = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	var text strings.Builder
	write := func(high, middle, low byte, count int) {
		bits := uint32(high)<<16 | uint32(middle)<<8 | uint32(low)
		for range count {
			text.WriteByte(alphabet[bits&0x3f])
			bits >>= 6
		}
	}
	high, middle, low := 0, 10, 20
	for range 10 {
		write(digest[high], digest[middle], digest[low], 4)
		high, middle, low = low+1, high+1, middle+1
	}
	write(0, digest[31], digest[30], 3)
	return text.String()
}

// mariaDBAccount asks for what the server knows of an account, which is JSON.
const mariaDBAccount = `(SELECT Priv FROM mysql.global_priv WHERE User = ? AND Host = '%')`

// mariaDBHasPassword tells whether an account, as mariaDBAccount gives it, has a
// password and no other.
func mariaDBHasPassword(account, password string) bool {
	var known struct {
		Plugin      string `json:"plugin"`
		Verifier    string `json:"authentication_string"`
		IsLocked    bool   `json:"account_locked"`
		LastChanged *int64 `json:"password_last_changed"`
		// Alternatives have one entry for the verifier above, and one for each other.
		Alternatives []struct{} `json:"auth_or"`
	}
	if err := json.Unmarshal([]byte(account), &known); err != nil {
		return false
	}
	isExpired := known.LastChanged != nil && *known.LastChanged == 0
	return known.Plugin == "mysql_native_password" && known.Verifier == mariaDBVerifier(password) &&
		!known.IsLocked && !isExpired && len(known.Alternatives) <= 1
}

// mariaDBVerifier is what mysql_native_password keeps.
func mariaDBVerifier(password string) string {
	once := sha1.Sum([]byte(password)) // #nosec G401 -- what MariaDB's plug-in is made of
	twice := sha1.Sum(once[:])         // #nosec G401
	return "*" + strings.ToUpper(hex.EncodeToString(twice[:]))
}

// passwordState looks at an account. What was found of it is remembered until it
// changes, since the look is made to be costly.
func (c *Connection) passwordState(account string) plan.PasswordState {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.account != account || c.password == "" {
		c.account, c.password = account, plan.PasswordDiffers
		if c.dialect.hasPassword(account, c.target.AppPassword) {
			c.password = plan.PasswordSet
		}
	}
	return c.password
}
