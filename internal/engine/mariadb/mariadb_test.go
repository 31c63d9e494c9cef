// SPDX-License-Identifier: Apache-2.0

package mariadb

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"coolops.cn/database-manager/internal/plan"
)

var update = flag.Bool("update", false, "write the golden files in testdata anew")

func TestTheFilesOfAMemberAreThoseInTestdata(t *testing.T) {
	for name, content := range New().Files(nil) {
		t.Run(name, func(t *testing.T) { checkGolden(t, name, content) })
	}
}

func TestTheFileOfLiveParametersIsThatInTestdata(t *testing.T) {
	files := New().LiveFiles(plan.LiveDefaults(New().Parameters()))
	if len(files) != 1 {
		t.Fatalf("it is %d files", len(files))
	}
	checkGolden(t, "live.cnf", files["live.cnf"])
}

func TestAFixedParameterChangesTheConfigurationAlone(t *testing.T) {
	files := New().Files(plan.Settings{"innodb_buffer_pool_size": "3221225472"})
	checkGolden(t, "fixed/mariadb.cnf", files["mariadb.cnf"])
	for name, content := range New().Files(nil) {
		if (files[name] != content) != (name == "mariadb.cnf") {
			t.Errorf("%s is\n%s\nand without the parameter\n%s", name, files[name], content)
		}
	}
}

// checkGolden compares a file with the one in testdata.
func checkGolden(t *testing.T, name, content string) {
	t.Helper()
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
}
