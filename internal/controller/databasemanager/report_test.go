// SPDX-License-Identifier: Apache-2.0

package databasemanager

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// fill gives everything in a value another value than zero.
func fill(value reflect.Value) {
	switch value.Kind() {
	case reflect.Struct:
		if value.Type() == reflect.TypeFor[metav1.Time]() {
			value.Set(reflect.ValueOf(metav1.Unix(1700000000, 0)))
			return
		}
		for _, field := range value.Fields() {
			fill(field)
		}
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		fill(value.Index(0))
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		fill(value.Elem())
	case reflect.String:
		value.SetString("text")
	case reflect.Bool:
		value.SetBool(true)
	default:
		value.SetInt(7)
	}
}

// A field that isn't written is missing for users, and differs from what is wanted at
// each look: it would be written again and again.
func TestEveryFieldOfTheStatusIsWritten(t *testing.T) {
	var all v1alpha1.DatabaseManagerStatus
	fill(reflect.ValueOf(&all).Elem())
	for sentence, want := range map[string]v1alpha1.DatabaseManagerStatus{"all of them": all, "none": {Members: []v1alpha1.MemberStatus{{Name: "db-0"}}}} {
		t.Run(sentence, func(t *testing.T) {
			encoded, err := json.Marshal(statusFields(want))
			if err != nil {
				t.Fatal(err)
			}
			var got v1alpha1.DatabaseManagerStatus
			if err := json.Unmarshal(encoded, &got); err != nil {
				t.Fatal(err)
			}
			if difference := cmp.Diff(want, got); difference != "" {
				t.Errorf("what is written differs (-want +got):\n%s", difference)
			}
		})
	}
}
