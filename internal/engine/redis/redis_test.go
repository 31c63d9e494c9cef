// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"coolops.cn/database-manager/internal/plan"
)

var update = flag.Bool("update", false, "write the golden files in testdata anew")

// checkGolden compares a file with what is below testdata.
func checkGolden(t *testing.T, path, content string) {
	t.Helper()
	path = filepath.Join("testdata", path)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if content != string(want) {
		t.Errorf("it is\n%s\nwant (go test -update renews it; databases that exist would be restarted)\n%s", content, want)
	}
}

func TestTheFilesOfAMemberAreThoseInTestdata(t *testing.T) {
	for _, engine := range []Engine{New(), NewValkey()} {
		name := string(engine.Type())
		for file, content := range engine.Files(nil) {
			t.Run(name+"/"+file, func(t *testing.T) { checkGolden(t, filepath.Join(name, file), content) })
		}
		for file, content := range engine.LiveFiles(plan.LiveDefaults(engine.Parameters())) {
			t.Run(name+"/"+file, func(t *testing.T) { checkGolden(t, filepath.Join(name, file), content) })
		}
	}
}

func TestAFixedParameterIsInAFileThatAMemberIsRestartedFor(t *testing.T) {
	files := New().Files(plan.Settings{"tcp-backlog": "64"})
	checkGolden(t, "fixed/redis.conf", files["redis.conf"])
	for name, content := range New().Files(nil) {
		if isSame := content == files[name]; isSame != (name != "redis.conf") {
			t.Errorf("%s is the same: %t", name, isSame)
		}
	}
}

// unquote reads a value as Redis' sdssplitargs does.
func unquote(t *testing.T, quoted string) string {
	t.Helper()
	if !strings.HasPrefix(quoted, `"`) {
		return quoted
	}
	if len(quoted) < 2 || !strings.HasSuffix(quoted, `"`) {
		t.Fatalf("%q has no closing quote", quoted)
	}
	inner := quoted[1 : len(quoted)-1]
	var value strings.Builder
	for i := 0; i < len(inner); i++ {
		switch {
		case inner[i] == '"':
			t.Fatalf("%q ends early", quoted)
		case inner[i] != '\\':
			value.WriteByte(inner[i])
		case i+3 < len(inner) && inner[i+1] == 'x':
			value.WriteByte(hexDigit(t, inner[i+2])<<4 | hexDigit(t, inner[i+3]))
			i += 3
		case i+1 < len(inner):
			value.WriteByte(inner[i+1])
			i++
		}
	}
	return value.String()
}

func hexDigit(t *testing.T, char byte) byte {
	t.Helper()
	index := strings.IndexByte("0123456789abcdef", char)
	if index < 0 {
		t.Fatalf("%q isn't a hexadecimal digit", char)
	}
	return byte(index)
}

func FuzzAQuotedValueIsReadAsItWas(f *testing.F) {
	for _, seed := range []string{"", "plain", "two words", `"`, `\`, "line\nsave 1 1", "#", "\x00\xff", "é", "'"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		quoted := quote(value)
		if strings.ContainsAny(quoted, "\n\r\x00") {
			t.Errorf("%q spans lines", quoted)
		}
		if got := unquote(t, quoted); got != value {
			t.Errorf("%q became %q, which reads %q", value, quoted, got)
		}
	})
}
