// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"coolops.cn/database-manager/internal/dbclient"
	"coolops.cn/database-manager/internal/plan"
)

// What servers kept of the password "apppw".
const (
	mysqlKept   = "caching_sha2_password N N 1 244124303041240E4F4145613E04370B60481614543D2F7840645F6A37735044572F656D2F4237503541517933454B4950363650665345377944614D6A45704F6659445A5643"
	mariaDBKept = `{"access":0,"version_id":110809,"plugin":"mysql_native_password","authentication_string":"*DB14CBAE92D7CB2F84BD3AA7222415B564A4054A","account_locked":false,"password_last_changed":1795992696,"ssl_type":0,"password_lifetime":0}`
)

func TestAnAccountHasAPasswordIfItHasNoOtherAndCanBeUsed(t *testing.T) {
	for sentence, row := range map[string]struct {
		dialect           dialect
		account, password string
		want              bool
	}{
		"MySQL: the password":                  {mysql(), mysqlKept, "apppw", true},
		"MySQL: another one":                   {mysql(), mysqlKept, "apppW", false},
		"MySQL: a longer one":                  {mysql(), mysqlKept, "apppw ", false},
		"MySQL: none":                          {mysql(), mysqlKept, "", false},
		"MySQL: no account":                    {mysql(), "", "apppw", false},
		"MySQL: a locked account":              {mysql(), strings.Replace(mysqlKept, "N N 1", "Y N 1", 1), "apppw", false},
		"MySQL: an expired password":           {mysql(), strings.Replace(mysqlKept, "N N 1", "N Y 1", 1), "apppw", false},
		"MySQL: a second password":             {mysql(), strings.Replace(mysqlKept, "N N 1", "N N 0", 1), "apppw", false},
		"MySQL: another plug-in":               {mysql(), strings.Replace(mysqlKept, "caching_sha2", "sha256", 1), "apppw", false},
		"MySQL: no verifier":                   {mysql(), "caching_sha2_password N N 1 ", "apppw", false},
		"MySQL: half a verifier":               {mysql(), mysqlKept[:90], "apppw", false},
		"MySQL: a verifier of nonsense":        {mysql(), "caching_sha2_password N N 1 " + strings.Repeat("41", 70), "apppw", false},
		"MySQL: longer than the clients allow": {mysql(), mysqlAccountOf(strings.Repeat("x", 214)), strings.Repeat("x", 214), false},
		"MySQL: as long as they allow":         {mysql(), mysqlAccountOf(strings.Repeat("x", 213)), strings.Repeat("x", 213), true},
		"MySQL: more rounds":                   {mysql(), "caching_sha2_password N N 1 " + strings.ToUpper(hex.EncodeToString([]byte(shaCryptVerifier("p", "12345678901234567890", 0x1a)))), "p", true},
		"MariaDB: the password":                {mariaDB(), mariaDBKept, "apppw", true},
		"MariaDB: another one":                 {mariaDB(), mariaDBKept, "apppW", false},
		"MariaDB: no account":                  {mariaDB(), "", "apppw", false},
		"MariaDB: a locked account":            {mariaDB(), strings.Replace(mariaDBKept, "false", "true", 1), "apppw", false},
		"MariaDB: an expired password":         {mariaDB(), strings.Replace(mariaDBKept, "1795992696", "0", 1), "apppw", false},
		"MariaDB: another plug-in":             {mariaDB(), strings.Replace(mariaDBKept, "mysql_native_password", "ed25519", 1), "apppw", false},
		"MariaDB: no second password any more": {mariaDB(), strings.Replace(mariaDBKept, `{`, `{"auth_or":[{}],`, 1), "apppw", true},
		"MariaDB: a second password":           {mariaDB(), strings.Replace(mariaDBKept, `{`, `{"auth_or":[{},{}],`, 1), "apppw", false},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := row.dialect.hasPassword(row.account, row.password); got != row.want {
				t.Errorf("got %t, want %t", got, row.want)
			}
		})
	}
}

// mysqlAccountOf is an account with a new verifier of a password.
func mysqlAccountOf(password string) string {
	return "caching_sha2_password N N 1 " + strings.ToUpper(hex.EncodeToString([]byte(mysqlVerifier(password))))
}

// From the specification of SHA-crypt, whose salts are shorter.
func TestSHACryptIsThatOfTheSpecification(t *testing.T) {
	for _, row := range []struct {
		password, salt string
		rounds         int
		want           string
	}{
		{"Hello world!", "saltstring", 5000, "5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5"},
		{"Hello world!", "saltstringsaltst", 10_000, "3xv.VbSHBb41AL9AvLeujZkZRBAwqFMz2.opqey6IcA"},
		{"we have a short salt string but not a short password", "short", 77_777, "JiO1O3ZpDAxGJeaDIuqCoEFysAe1mZNJRs3pw0KQRd/"},
		{strings.Repeat("x", 70), "abc", 1000, "Tl2XdQ9SsLJz3m78s1sTwwfV29P8cohDvJyKjd/CUW2"},
	} {
		if got := shaCrypt([]byte(row.password), []byte(row.salt), row.rounds); got != row.want {
			t.Errorf("%q with %q became %s, want %s", row.password, row.salt, got, row.want)
		}
	}
}

func TestAVerifierHasANewSaltEachTime(t *testing.T) {
	first, second := mysqlVerifier("p"), mysqlVerifier("p")
	if first == second || len(first) != len("$A$005$")+20+43 || !strings.HasPrefix(first, "$A$005$") {
		t.Errorf("they are %s and %s", first, second)
	}
}

func TestAPasswordThatNoServerTakesIsRefusedUnseen(t *testing.T) {
	for sentence, row := range map[string]struct {
		dial     func(dbclient.Target) *Connection
		password string
		want     string
	}{
		"MySQL: none":     {Dial, "", "the password is empty"},
		"MySQL: a NUL":    {Dial, "s3cret\x00", "the password holds a NUL byte"},
		"MySQL: too long": {Dial, strings.Repeat("s3cret", 36), "the password has 216 bytes, and may have 213"},
		"MariaDB: none":   {DialMariaDB, "", "the password is empty"},
		"MariaDB: a NUL":  {DialMariaDB, "\x00", "the password holds a NUL byte"},
	} {
		t.Run(sentence, func(t *testing.T) {
			err := row.dial(dbclient.Target{AppUsername: "app", AppPassword: row.password}).SetPassword(t.Context())
			var refusal *dbclient.Refusal
			if !errors.As(err, &refusal) || refusal.Reason != row.want {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
}

func TestAnAccountIsLookedAtAgainWhenItChanges(t *testing.T) {
	looks := 0
	connection := &Connection{target: dbclient.Target{AppPassword: "new"}, dialect: dialect{hasPassword: func(account, password string) bool {
		looks++
		return account == "kept of new" && password == "new"
	}}}
	for _, row := range []struct {
		account string
		want    plan.PasswordState
		looks   int
	}{
		{"", plan.PasswordDiffers, 1},
		{"", plan.PasswordDiffers, 1},
		{"kept of old", plan.PasswordDiffers, 2},
		{"kept of new", plan.PasswordSet, 3},
		{"kept of new", plan.PasswordSet, 3},
		{"kept of old", plan.PasswordDiffers, 4},
	} {
		if got := connection.passwordState(row.account); got != row.want || looks != row.looks {
			t.Errorf("%q is %s after %d looks, want %s after %d", row.account, got, looks, row.want, row.looks)
		}
	}
}

func BenchmarkALookAtAnAccount(b *testing.B) {
	for b.Loop() {
		mysqlHasPassword(mysqlKept, "apppw")
	}
}
