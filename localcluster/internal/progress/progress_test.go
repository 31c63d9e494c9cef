// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestLinesOfTwoStepsAtOnce(t *testing.T) {
	const redraw = "\r\x1b[K"
	for sentence, row := range map[string]struct {
		width func() int
		want  string
	}{
		"in a log, each tells at most every half minute": {nil, "" +
			"building a …\n" +
			"making b …\n" +
			"building a: 7 of 9, 31s\n" +
			"note\n" +
			"building a: built (31s)\n" +
			"making b: failed (31s)\n"},
		"on a terminal, they share the last line": {func() int { return 40 }, "" +
			redraw + "building a …\n" +
			redraw + "making b …\n" +
			redraw + "building a: 5 of 9, 1s" +
			redraw + "building a: 5 of 9, 1s | making b: 3, 1" +
			redraw + "building a: 7 of 9, 31s | making b: 3, " +
			redraw + "note\nbuilding a: 7 of 9, 31s | making b: 3, " +
			redraw + "building a: built (31s)\nmaking b: 3, 1s" +
			redraw + "making b: failed (31s)\n"},
	} {
		t.Run(sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out strings.Builder
				printer := &Printer{out: &out, width: row.width}
				a, b := printer.Start("building a"), printer.Start("making b")
				<-time.After(time.Second)
				a.Update("%d of 9", 5)
				a.Update("%d of 9", 6) // too soon after the other
				b.Update("%d", 3)
				<-time.After(30 * time.Second)
				a.Update("%d of 9", 7)
				printer.Printf("note")
				a.End(nil, "built")
				b.End(errors.New("broken"), "made")
				if got := out.String(); got != row.want {
					t.Errorf("got\n%q\nwant\n%q", got, row.want)
				}
			})
		})
	}
}
