// SPDX-License-Identifier: Apache-2.0

// Package kit is the machinery that the controllers share, around client-go's:
//
//	informers ─▶ handlers ─▶ queue of keys ─▶ workers ─▶ sync(key) ─▶ writer
//	                             ▲                          │
//	prober ──────────────────────┘          own-writes ◀────┘
//
// It knows no type of any API of ours: what a key stands for, what an object
// has to look like, and whose it is are the controller's business.
package kit
