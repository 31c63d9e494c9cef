// SPDX-License-Identifier: Apache-2.0

// Package readme plays the READMEs: it types the commands that stand in them into a shell, and holds what is printed
// to what they say is printed. And it holds the READMEs of one thing in two languages to each other.
//
// A fenced block named console is played. In it
//
//   - a line that begins with "$ " is a command. It goes on in the next line where it ends in a backslash, and until the
//     end of a here-document where one begins in it.
//   - the lines after it are what is printed from then on, in this order, with others between them. An ellipsis, …,
//     stands for any text, one or more blanks for any number of blanks. Programs in the background and the command in
//     the foreground print independently of each other: which comes first isn't compared.
//
// All blocks of a README are played in one bash, with job control, from the root of the repository. A command in the
// foreground must succeed. At the end nothing may be left running.
//
//	go test ./test/readme -tags=readme -v -run=Examples/01
//
// plays one example's, on a cluster of its own.
package readme
