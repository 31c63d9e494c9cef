// SPDX-License-Identifier: Apache-2.0

package postgresql

import (
	"encoding/base64"
	"strings"
	"testing"

	"coolops.cn/database-manager/internal/plan"
)

// The salt, the iterations and the keys are those of RFC 7677's example, whose
// password is "pencil".
const pencil = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="

func TestAVerifierIsThatOfTheStandard(t *testing.T) {
	salt, err := base64.StdEncoding.DecodeString("W22ZaJ0SNY7soEsUEjb6gQ==")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := verifierOf("pencil", salt, 4096); err != nil || got != pencil {
		t.Errorf("got %s (%v)", got, err)
	}
}

func TestAVerifierIsComparedWithAPassword(t *testing.T) {
	for sentence, row := range map[string]struct {
		verifier, password string
		want               bool
	}{
		"that it is of":             {pencil, "pencil", true},
		"that it isn't of":          {pencil, "Pencil", false},
		"that is empty":             {pencil, "", false},
		"where there is none":       {"", "pencil", false},
		"of the older kind":         {"md53175bce1d3201d16594cebf9d7eb3f9d", "pencil", false},
		"without keys":              {"SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==", "pencil", false},
		"without a salt":            {"SCRAM-SHA-256$4096$a:b", "pencil", false},
		"with a salt that is none":  {strings.Replace(pencil, "W22Z", "?", 1), "pencil", false},
		"with no iterations":        {strings.Replace(pencil, "4096", "0", 1), "pencil", false},
		"with costly iterations":    {strings.Replace(pencil, "4096", "2147483647", 1), "pencil", false},
		"with endless iterations":   {strings.Replace(pencil, "4096", "99999999999999999999", 1), "pencil", false},
		"with something behind it":  {pencil + "x", "pencil", false},
		"with other keys behind it": {pencil[:len(pencil)-4] + "AAA=", "pencil", false},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := isVerifierOf(row.verifier, row.password); got != row.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// The examples are RFC 4013's, and what PostgreSQL makes of the rest.
func TestAPasswordIsPrepared(t *testing.T) {
	for sentence, row := range map[string]struct{ password, want string }{
		"a soft hyphen goes":                  {"I\u00adX", "IX"},
		"a Mongolian one, too":                {"I\u1806é", "Ié"},
		"letters stay":                        {"user", "user"},
		"capitals stay":                       {"USÉR", "USÉR"},
		"a variant becomes its letter":        {"\u00aa", "a"},
		"a number becomes its letters":        {"\u2168", "IX"},
		"a space is one of ASCII's":           {"a\u00a0b\u200bé", "a b é"},
		"control characters of ASCII alone":   {"\a\x7f", "\a\x7f"},
		"control characters beside others":    {"é\a\u00aa", "é\a\u00aa"},
		"what has an end from right to left":  {"\u06271\u00aa", "\u06271\u00aa"},
		"from right to left, as it should be": {"\u0627\u00a0\u0627", "\u0627 \u0627"},
		"what wasn't there in Unicode 3.2":    {"\u0221\u00aa", "\u0221\u00aa"},
		"nothing but what goes":               {"\u00ad", "\u00ad"},
		"what is no UTF-8":                    {"\xff\u00aa", "\xff\u00aa"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := prepare(row.password); got != row.want {
				t.Errorf("%+q becomes %+q, want %+q", row.password, got, row.want)
			}
		})
	}
}

func TestAPasswordIsComparedOnceForEachVerifier(t *testing.T) {
	a := account{name: "app", password: "pencil"}
	for _, row := range []struct {
		rows [][]string
		want plan.PasswordState
	}{
		{[][]string{{pencil, "t"}}, plan.PasswordSet},
		{[][]string{{pencil, "f"}}, plan.PasswordDiffers},
		{[][]string{{pencil, ""}}, plan.PasswordDiffers},
		{[][]string{{pencil, "t"}}, plan.PasswordSet},
		{[][]string{{"", "t"}}, plan.PasswordDiffers},
		{nil, plan.PasswordDiffers},
		{[][]string{{pencil, "t"}}, plan.PasswordSet},
	} {
		if got := a.state(row.rows); got != row.want {
			t.Errorf("%q gives %q, want %q", row.rows, got, row.want)
		}
	}
	a.is = plan.PasswordDiffers
	if got := a.state([][]string{{pencil, "t"}}); got != plan.PasswordDiffers {
		t.Error("it was compared again")
	}
	if got := (&account{password: "pencil"}).state([][]string{{pencil, "t"}}); got != "" {
		t.Errorf("without an account it is %q", got)
	}
}

func FuzzAQuotedTextIsReadAsItWas(f *testing.F) {
	for _, seed := range []string{"", "plain", "'", "''", `\`, `\'`, "'; DROP DATABASE app; --", "é", "\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		quoted := quoteText(text)
		inner, isEscaped := strings.CutPrefix(quoted, "E")
		if len(inner) < 2 || inner[0] != '\'' || inner[len(inner)-1] != '\'' {
			t.Fatalf("%q becomes %s", text, quoted)
		}
		inner = inner[1 : len(inner)-1]
		if isEscaped {
			inner = strings.ReplaceAll(inner, `\\`, "\x00backslash")
		}
		if strings.Contains(strings.ReplaceAll(inner, "''", ""), "'") || strings.Contains(inner, `\`) {
			t.Errorf("%q becomes %s, which ends early", text, quoted)
		}
		inner = strings.ReplaceAll(inner, "''", "'")
		if got := strings.ReplaceAll(inner, "\x00backslash", `\`); got != text && !strings.Contains(text, "\x00") {
			t.Errorf("%q becomes %s, which is %q", text, quoted, got)
		}
		if name := quoteName(text); strings.ReplaceAll(name[1:len(name)-1], `""`, `"`) != text {
			t.Errorf("the name %q becomes %s", text, name)
		}
	})
}
