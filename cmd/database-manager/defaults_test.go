// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestDefaultsAreReadFromTheFlags(t *testing.T) {
	t.Setenv("DATABASE_MANAGER_DEFAULT_STORAGE_CLASS", "fast")
	t.Setenv("DATABASE_MANAGER_DEFAULT_TOLERATIONS", "example.com/a:NoExecute,b=:PreferNoSchedule")
	read, err := parseFlags([]string{"--default-registry=registry.example.com:5000/mirror", "--default-image-pull-secrets=one,two", "--default-image-pull-secrets", "three"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(read.defaults.read)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"registry":"registry.example.com:5000/mirror","imagePullSecrets":["one","two","three"],"storageClass":"fast",` +
		`"tolerations":[{"key":"example.com/a","operator":"Exists","effect":"NoExecute"},{"key":"b","operator":"Equal","effect":"PreferNoSchedule"}]}`
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWithoutFlagsThereAreNoDefaults(t *testing.T) {
	read, err := parseFlags(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := json.Marshal(read.defaults.read); string(got) != "{}" {
		t.Errorf("got %s and %v", got, err)
	}
}

func TestDefaultsThatCantBeEndTheStartWithOneSentence(t *testing.T) {
	for argument, part := range map[string]string{
		"--default-registry=https://registry.example.com": "without https://",
		"--default-registry=registry.example.com/":        `"registry.example.com/", which isn't a registry`,
		"--default-registry=Registry.example.com":         "isn't a registry",
		"--default-registry=a b":                          "isn't a registry",
		"--default-registry=host:port":                    "isn't a registry",
		"--default-image-pull-secrets=one,Two":            `names "Two", which can't be a Secret`,
		"--default-image-pull-secrets=shop/one":           "can't be a Secret",
		"--default-storage-class=Fast":                    `is "Fast", which can't be a StorageClass`,
		"--default-tolerations=dedicated=databases":       "it has no effect; write for example",
		"--default-tolerations=dedicated:Never":           `its effect is "Never", and allowed are NoSchedule, PreferNoSchedule and NoExecute`,
		"--default-tolerations=a b:NoSchedule":            `"a b" can't be the key of a taint`,
		"--default-tolerations=:NoSchedule":               `"" can't be the key of a taint`,
		"--default-tolerations=a=b c:NoSchedule":          `"b c" can't be the value of a taint`,
		"--default-tolerations=a:NoSchedule,b":            `"b" isn't a toleration`,
		"--default-tolerations=a=b=c:NoSchedule":          `"b=c" can't be the value of a taint`,
	} {
		_, err := parseFlags([]string{argument})
		if err == nil || !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s gives %v, want one line with %q", argument, err, part)
		}
		if code := run(t.Context(), []string{argument}); code != 2 {
			t.Errorf("%s ends with the code %d, want 2", argument, code)
		}
	}
}
