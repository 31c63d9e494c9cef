// SPDX-License-Identifier: Apache-2.0

package postgresql

import "coolops.cn/database-manager/internal/plan"

// Parameters are what spec.config may set.
func (Engine) Parameters() []plan.Parameter { return nil }

// LiveFiles returns the file that the configuration includes.
func (Engine) LiveFiles(plan.Settings) map[string]string {
	return map[string]string{"live.conf": ""}
}
