// SPDX-License-Identifier: Apache-2.0

//go:build integration

package takeovers

import (
	"os"
	"testing"

	"github.com/plumbline-dev/plumbline/test/harness/failpoint"
)

// shared is the cluster of all tests.
var shared *failpoint.Cluster

func TestMain(m *testing.M) {
	os.Exit(failpoint.Main(m, func(c *failpoint.Cluster) { shared = c }))
}
