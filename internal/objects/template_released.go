//go:build !successor

// SPDX-License-Identifier: Apache-2.0

package objects

// nextTemplates are the forms of builds to come: none.
func nextTemplates() []template { return nil }
