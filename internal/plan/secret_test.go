// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/base64"
	"net/url"
	"testing"
)

// decode returns the data of a Secret's fields.
func decode(t *testing.T, child Child) map[string]string {
	t.Helper()
	encoded, isMap := child.Fields["data"].(map[string]any)
	if !isMap {
		t.Fatalf("no data in %v", child.Fields)
	}
	data := map[string]string{}
	for key, value := range encoded {
		text, isText := value.(string)
		decoded, err := base64.StdEncoding.DecodeString(text)
		if !isText || err != nil {
			t.Fatalf("%s isn't base64: %v", key, err)
		}
		data[key] = string(decoded)
	}
	return data
}

// checkURI checks that whoever parses the URI gets the password.
func checkURI(t *testing.T, uri, password string) {
	t.Helper()
	parsed, err := url.Parse(uri)
	if err != nil {
		t.Fatalf("parse %q: %v", uri, err)
	}
	if got, _ := parsed.User.Password(); got != password || parsed.Host != "db:6379" || parsed.Path != "/0" {
		t.Errorf("%q says the password %q, host %s, path %s", uri, got, parsed.Host, parsed.Path)
	}
}
