// SPDX-License-Identifier: Apache-2.0

// Package mutants puts bugs back into the product, one at a time, and has the tests
// find each: the bugs of other operators, those that were tried with the real
// servers, and what the code's own comments say must not happen. A bug that no test
// finds is a test that is missing.
//
// A mutant is a piece of a file, and what stands there instead. The files stay as
// they are: the go command is given an overlay, which holds for embedded files, too.
// A mutant is killed if the tests that are named beside it fail, and no other way:
// one that doesn't compile is a mistake in the table, as is one whose piece isn't in
// its file exactly once. The same tests have to pass without it. Those that only
// compare with a folder of golden files don't count, since whoever makes the change
// renews the files.
//
//	go test -v -tags=mutants -timeout=2h ./test/mutants
//
// prints which test killed which mutant, how long that took, and how many of all
// were killed. A mutant that survives fails the test, unless the table says why
// nothing can be seen of it.
//
// The mutants are of these levels, by what it takes to kill them:
//
//	unit      tests that need nothing but Go, and a POSIX shell
//	simulate  the decisions about roles, played against a model of servers
//	faults    a real API server, with servers that are played: it needs what the
//	          tests in test/faults do, but the operator's binary, which is built
//	          with the mutant in it
//	engines   real database servers, which hack/engines.sh installs
//
// and these variables choose:
//
//	MUTANTS_LEVELS  the levels, separated by blanks (unit simulate)
//	MUTANTS_SHARE   of so many mutants one is tried (1)
//	MUTANTS_SEED    chooses among them (1)
//	MUTANTS_TABLE   a file that the table is written to, too
package mutants
