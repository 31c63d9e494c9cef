// SPDX-License-Identifier: Apache-2.0

package sample_test

import (
	"fmt"
	"testing"

	"coolops.cn/database-manager/test/sample"
)

func TestOfSoManyCasesOneIsChosen(t *testing.T) {
	t.Parallel()
	const cases, share = 10000, 10
	chosen, differs := 0, false
	for i := range cases {
		name := fmt.Sprintf("case %d", i)
		is := sample.IsChosen(1, share, name)
		if is {
			chosen++
		}
		if is != sample.IsChosen(1, share, name) {
			t.Errorf("%s is chosen and isn't, by the same seed", name)
		}
		differs = differs || is != sample.IsChosen(2, share, name)
		if !sample.IsChosen(1, 1, name) {
			t.Errorf("%s isn't chosen when all are", name)
		}
	}
	if chosen < cases/share*9/10 || chosen > cases/share*11/10 {
		t.Errorf("%d of %d are chosen, want about one of %d", chosen, cases, share)
	}
	if !differs {
		t.Error("another seed chooses the same")
	}
}

func TestANumberIsReadFromAVariable(t *testing.T) {
	const variable = "SAMPLE_NUMBER"
	for text, want := range map[string]uint64{"": 7, "1": 1, "18446744073709551615": 18446744073709551615} {
		t.Setenv(variable, text)
		if got, err := sample.Number(variable, 7); err != nil || got != want {
			t.Errorf("%q is read as %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"0", "-1", "many", "1.5"} {
		t.Setenv(variable, text)
		if got, err := sample.Number(variable, 7); err == nil {
			t.Errorf("%q is read as %d, want an error", text, got)
		}
	}
}
