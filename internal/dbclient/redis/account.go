// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"

	goredis "github.com/redis/go-redis/v9"

	"coolops.cn/database-manager/internal/dbclient"
	"coolops.cn/database-manager/internal/plan"
)

// account is the application's, as it should be.
type account struct {
	name string
	// digest is what the server keeps of the password: its SHA-256, in hexadecimal.
	digest string
}

func accountOf(target dbclient.Target) account {
	digest := sha256.Sum256([]byte(target.AppPassword))
	return account{name: target.AppUsername, digest: hex.EncodeToString(digest[:])}
}

// password tells from an answer to ACL GETUSER whether the account has the
// password, and no other. Nothing was answered if there is no such account.
func (a account) password(answer any) plan.PasswordState {
	flags, passwords := words(field(answer, "flags")), words(field(answer, "passwords"))
	if slices.Contains(flags, "on") && !slices.Contains(flags, "nopass") && slices.Equal(passwords, []string{a.digest}) {
		return plan.PasswordSet
	}
	return plan.PasswordDiffers
}

// field returns a field of an answer: a map in one version of the protocol, and
// names and values in turn in the other.
func field(answer any, name string) any {
	switch fields := answer.(type) {
	case map[any]any:
		return fields[name]
	case []any:
		for i := 0; i+1 < len(fields); i += 2 {
			if fields[i] == name {
				return fields[i+1]
			}
		}
	}
	return nil
}

func words(list any) []string {
	var words []string
	elements, _ := list.([]any) // nothing else is a list
	for _, element := range elements {
		word, _ := element.(string) // what is no word is none of those that are looked for
		words = append(words, word)
	}
	return words
}

// SetPassword gives the application's account the password of the target, also
// in the file that the server would load its accounts from.
func (c *Connection) SetPassword(ctx context.Context) error {
	err := c.client.Do(ctx, "ACL", "GETUSER", c.account.name).Err()
	if errors.Is(err, goredis.Nil) {
		// The boot script makes the accounts.
		return &dbclient.Refusal{Reason: "it has no account for the application any more; its next start makes one"}
	}
	if err == nil {
		err = c.client.ACLSetUser(ctx, c.account.name, "on", "resetpass", "#"+c.account.digest).Err()
	}
	if err == nil {
		err = c.client.Do(ctx, "ACL", "SAVE").Err()
	}
	if err != nil {
		return describe(err)
	}
	return nil
}
