// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"coolops.cn/database-manager/localcluster/internal/cluster"
)

func TestSplitArgs(t *testing.T) {
	known := NewCommand().PersistentFlags()
	for sentence, row := range map[string]struct{ args, own, rest string }{
		"kubectl's own need no sign":            {"get pods -A", "", "get pods -A"},
		"flags of ours come first":              {"--name e2e get pods", "--name e2e", "get pods"},
		"or with an equals sign":                {"--name=e2e --state-dir=/s get pods", "--name=e2e --state-dir=/s", "get pods"},
		"after kubectl's first they are its":    {"get pods --name e2e", "", "get pods --name e2e"},
		"a flag that isn't ours is kubectl's":   {"--namespace=a get pods", "", "--namespace=a get pods"},
		"so is a short one":                     {"-n a get pods", "", "-n a get pods"},
		"two dashes part them":                  {"--name e2e -- --cache-dir=/c get pods", "--name e2e", "--cache-dir=/c get pods"},
		"two dashes alone go":                   {"-- get pods", "", "get pods"},
		"later ones are kubectl's":              {"exec pod -- ls", "", "exec pod -- ls"},
		"none is none":                          {"", "", ""},
		"a value that is missing stays missing": {"--name", "--name", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			own, rest := splitArgs(known, strings.Fields(row.args))
			if !slices.Equal(own, strings.Fields(row.own)) || !slices.Equal(rest, strings.Fields(row.rest)) {
				t.Errorf("ours are %q, kubectl's %q", own, rest)
			}
		})
	}
}

func TestEveryCommandSaysWhatItDoes(t *testing.T) {
	for _, command := range NewCommand().Commands() {
		if !command.Hidden && command.Short == "" {
			t.Errorf("%s doesn't", command.Name())
		}
		if command.Args == nil && !command.DisableFlagParsing {
			t.Errorf("%s takes any argument", command.Name())
		}
	}
}

func TestWhatIsNotGivenIsLeftAsItIs(t *testing.T) {
	for sentence, row := range map[string]struct {
		args string
		want cluster.Options
		says string
	}{
		"nothing given asks for nothing":         {"", cluster.Options{}, ""},
		"a default that is given is asked for":   {"--nodes=1 --node-lost-after=20s", cluster.Options{Nodes: 1, NodeLostAfter: 20 * time.Second}, ""},
		"so is anything else":                    {"--nodes=3 --evict-after=5s", cluster.Options{Nodes: 3, EvictAfter: 5 * time.Second}, ""},
		"no nodes are asked for by another flag": {"--nodes=0", cluster.Options{}, "--control-plane-only"},
		"fake nodes are asked for by number":     {"--fake=7", cluster.Options{Fake: 7}, ""},
		"no fake nodes aren't asked for":         {"--fake=0", cluster.Options{}, "--fake is 0"},
		"nobody notices at once":                 {"--node-lost-after=0s", cluster.Options{}, "--node-lost-after is 0"},
	} {
		t.Run(sentence, func(t *testing.T) {
			var asked, got cluster.Options
			flags := pflag.NewFlagSet("up", pflag.ContinueOnError)
			nodeFlags(flags, &asked)
			if err := flags.Parse(strings.Fields(row.args)); err != nil {
				t.Fatal(err)
			}
			err := askedForNodes(flags, asked, &got)
			if (err == nil) != (row.says == "") || err != nil && !strings.Contains(err.Error(), row.says) {
				t.Errorf("it says %v, want %q", err, row.says)
			}
			if err == nil && !reflect.DeepEqual(got, row.want) {
				t.Errorf("it asks for %+v", got)
			}
		})
	}
}
