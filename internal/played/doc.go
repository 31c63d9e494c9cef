// SPDX-License-Identifier: Apache-2.0

// Package played plays database servers in memory, as far as the decisions of the
// operator see them: what a server has received and executed, what it keeps over a
// restart and what it forgets, whom it follows and what its primary waits for. The
// planner's simulator plays with them. It knows nothing of Kubernetes, and isn't safe
// for concurrent use.
//
// A commit is a letter, and the data of a server are its letters in their order: so
// two positions compare as the beginnings of each other.
package played
