// SPDX-License-Identifier: Apache-2.0

// Package arch has no code of its own, only tests that read the code of all
// other packages and hold it to the rules by which this repository is built:
// who may import whom, what a pure package may use, how long a function may
// get, and that nothing is kept in package variables. Links in the pages of the
// repository are checked, too.
//
// The rules stand in tables at the head of each test file. A new package needs
// a line in the table of imports_test.go before the test passes: that line is
// where its place is decided.
package arch
