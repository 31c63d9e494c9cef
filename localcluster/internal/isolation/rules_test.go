// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files in testdata anew")

// TestRules compares with what the end-to-end tests have nft read.
func TestRules(t *testing.T) {
	peers := []netip.Addr{netip.MustParseAddr("10.244.0.3"), netip.MustParseAddr("10.244.1.7")}
	for name, rules := range map[string]string{
		"cut.nft": Cut(nil), "cut-from-two.nft": Cut(peers), "mend.nft": Mend(nil), "mend-one.nft": Mend(peers[:1]),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("testdata", name)
			if *update {
				if err := os.WriteFile(path, []byte(rules), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if rules != string(want) {
				t.Errorf("%s differs (write it anew with -update); got\n%s", path, rules)
			}
		})
	}
}
