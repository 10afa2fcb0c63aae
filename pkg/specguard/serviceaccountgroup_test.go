// SPDX-License-Identifier: Apache-2.0

package specguard

import "testing"

// A group that merely begins like the service accounts' needed no stamp.
func TestIsServiceAccountGroup(t *testing.T) {
	tests := map[string]bool{
		"system:serviceaccounts":       true,
		"system:serviceaccounts:ci":    true,
		"system:serviceaccountsX":      false,
		"system:serviceaccount:ci:bot": false,
		"platform":                     false,
		"":                             false,
	}
	for group, want := range tests {
		t.Run(group, func(t *testing.T) {
			if got := IsServiceAccountGroup(group); got != want {
				t.Errorf("IsServiceAccountGroup(%q) = %t, want %t", group, got, want)
			}
		})
	}
}
