// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"os"
	"testing"
)

// The environment variables that hold the paths of the Envoy that is tested with, and of
// the oldest that is served.
const (
	variable       = "ENVOY"
	oldestVariable = "ENVOY_OLDEST"
)

// EachVersion runs a test with the Envoy that is tested with, and once more with the
// oldest that is served, if the environment names another one. The test must not be
// parallel.
func EachVersion(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	latest, oldest := Binary(t), os.Getenv(oldestVariable)
	if oldest == "" || oldest == latest {
		test(t)
		return
	}
	t.Run("latest", test)
	t.Run("oldest", func(t *testing.T) {
		t.Setenv(variable, oldest)
		test(t)
	})
}
