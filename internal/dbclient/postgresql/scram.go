// SPDX-License-Identifier: Apache-2.0

package postgresql

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/xdg-go/stringprep"
)

const (
	// scheme begins a verifier, which is what the server keeps of a password:
	//
	//	SCRAM-SHA-256$ITERATIONS:SALT$STORED-KEY:SERVER-KEY
	scheme = "SCRAM-SHA-256"
	// iterations are as many as the server does by default.
	iterations = 4096
	// mostIterations bound what it costs to compare a verifier, since accounts may
	// choose their own: the application would otherwise keep the operator busy.
	mostIterations = 100_000
	saltLength     = 16
)

// verifierOf returns the verifier of a password.
func verifierOf(password string, salt []byte, iterations int) (string, error) {
	salted, err := pbkdf2.Key(sha256.New, prepare(password), salt, iterations, sha256.Size)
	if err != nil {
		return "", fmt.Errorf("derive a key of a password: %w", err)
	}
	stored := sha256.Sum256(sign(salted, "Client Key"))
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("%s$%d:%s$%s:%s", scheme, iterations, encode(salt), encode(stored[:]), encode(sign(salted, "Server Key"))), nil
}

func sign(key []byte, text string) []byte {
	signature := hmac.New(sha256.New, key)
	signature.Write([]byte(text))
	return signature.Sum(nil)
}

// isVerifierOf tells whether a verifier is that of a password.
func isVerifierOf(verifier, password string) bool {
	salt, iterations, err := readVerifier(verifier)
	if err != nil {
		return false
	}
	expected, err := verifierOf(password, salt, iterations)
	return err == nil && hmac.Equal([]byte(expected), []byte(verifier))
}

// readVerifier returns the salt of a verifier, and how many iterations it took.
func readVerifier(verifier string) ([]byte, int, error) {
	parameters, isScram := strings.CutPrefix(verifier, scheme+"$")
	parameters, _, hasKeys := strings.Cut(parameters, "$")
	count, encoded, hasSalt := strings.Cut(parameters, ":")
	if !isScram || !hasKeys || !hasSalt {
		return nil, 0, errors.New("it is no verifier")
	}
	iterations, err := strconv.Atoi(count)
	if err != nil || iterations < 1 || iterations > mostIterations {
		return nil, 0, errors.New("it has no number of iterations that is expected")
	}
	salt, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, 0, fmt.Errorf("read its salt: %w", err)
	}
	return salt, iterations, nil
}

// prepare brings a password into the form that the server and its clients derive
// keys from: that of RFC 4013 (SASLprep), or as it is, where that form doesn't
// allow it. As the server does, it looks at the characters before they are
// normalised, and takes U+200B for a space.
func prepare(password string) string {
	if isASCII(password) || !utf8.ValidString(password) {
		return password
	}
	// The RFC's table B.1 has it, and the package's doesn't.
	const mongolianHyphen = '\u1806'
	var mapped []rune
	for _, char := range password {
		_, isDropped := stringprep.TableB1.Map(char)
		switch {
		case stringprep.TableC1_2.Contains(char):
			mapped = append(mapped, ' ')
		case !isDropped && char != mongolianHyphen:
			mapped = append(mapped, char)
		}
	}
	if !isAllowed(mapped) {
		return password
	}
	normalised, err := stringprep.Profile{Normalize: true}.Prepare(string(mapped))
	if err != nil { // it is only asked to normalise
		return password
	}
	return normalised
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(char rune) bool { return char >= utf8.RuneSelf })
}

// isAllowed tells whether SASLprep allows what has been mapped.
func isAllowed(chars []rune) bool {
	prohibited := []stringprep.Set{
		stringprep.TableA1, stringprep.TableC1_2, stringprep.TableC2_1, stringprep.TableC2_2, stringprep.TableC3, stringprep.TableC4,
		stringprep.TableC5, stringprep.TableC6, stringprep.TableC7, stringprep.TableC8, stringprep.TableC9,
	}
	rightToLeft, leftToRight := 0, 0
	for _, char := range chars {
		for _, table := range prohibited {
			if table.Contains(char) {
				return false
			}
		}
		if stringprep.TableD1.Contains(char) {
			rightToLeft++
		}
		if stringprep.TableD2.Contains(char) {
			leftToRight++
		}
	}
	if len(chars) == 0 || rightToLeft == 0 {
		return len(chars) > 0
	}
	return leftToRight == 0 && stringprep.TableD1.Contains(chars[0]) && stringprep.TableD1.Contains(chars[len(chars)-1])
}
