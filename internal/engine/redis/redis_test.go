// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"flag"
	"strings"
	"testing"

	"coolops.cn/database-manager/internal/engine/filetest"
	"coolops.cn/database-manager/internal/plan"
)

var update = flag.Bool("update", false, "write the golden files in testdata anew")

func TestTheFilesOfAMemberAreThoseInTestdata(t *testing.T) {
	for _, engine := range []Engine{New(), NewValkey()} {
		name := string(engine.Type())
		t.Run(name, func(t *testing.T) {
			filetest.Golden{Dir: "testdata/" + name, IsRenewed: *update}.CheckFiles(t, engine)
		})
	}
}

func TestAFixedParameterIsInAFileThatAMemberIsRestartedFor(t *testing.T) {
	fixed := plan.Settings{"tcp-backlog": "64"}
	filetest.Golden{Dir: "testdata/fixed", IsRenewed: *update}.CheckFixed(t, New(), fixed, "redis.conf")
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
	for _, seed := range []string{"", "plain", "two words", `"`, `\`, "line\nsave 1 1", "line\nsave", "#", "\x00\xff", "é", "'"} {
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

func TestTheConfigurationSaysWhatSafetyRestsOn(t *testing.T) {
	for _, engine := range []Engine{New(), NewValkey()} {
		filetest.CheckLines(t, engine, string(engine.Type())+".conf", map[string]string{
			"a write is in a file":                     "appendonly yes",
			"a replica serves nothing that may be old": "replica-serve-stale-data no",
			"and takes no writes":                      "replica-read-only yes",
			"silence is no acknowledgement":            "min-replicas-max-lag 5",
			"a primary doesn't forget its history":     "repl-backlog-ttl 0",
		})
	}
}
