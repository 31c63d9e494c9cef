// SPDX-License-Identifier: Apache-2.0

package mariadb

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
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

func TestParametersAreInOrderAndTheirDefaultsAreRead(t *testing.T) {
	names := ""
	for _, known := range New().Parameters() {
		if shown, isAllowed := known.Read(known.Default); !isAllowed || shown != known.Default {
			t.Errorf("the default of %s, %q, is read as %q, %t", known.Name, known.Default, shown, isAllowed)
		}
		if last := names[strings.LastIndex(names, " ")+1:]; known.Name <= last || strings.Trim(known.Name, "abcdefghijklmnopqrstuvwxyz_") != "" {
			t.Errorf("%q comes after %q", known.Name, last)
		}
		names += " " + known.Name
	}
	// What is written for the operator's own reasons isn't among them.
	base := config(nil)
	for _, known := range New().Parameters() {
		option := strings.ReplaceAll(known.Name, "_", "-")
		if isDefault := strings.Contains(base, "\n"+option+"="+known.Default+"\n"); strings.Contains(base, "\n"+option+"=") && !isDefault {
			t.Errorf("the configuration has another %s than the default, %s", known.Name, known.Default)
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
