// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files in testdata anew")

func TestTheFilesOfAMemberAreThoseInTestdata(t *testing.T) {
	for name, content := range New().Files(nil) {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("testdata", name)
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
		})
	}
}
