// SPDX-License-Identifier: Apache-2.0

//go:build integration

package releasework

import (
	"os"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/plumbline-dev/plumbline/test/harness/guarded"
)

// patience bounds every wait. A work that waits for a right is looked at again after 30 s.
const patience = time.Minute

// One API server serves all tests; each has a namespace of its own.
var (
	config  *rest.Config
	admin   client.Client
	cluster *guarded.Cluster
)

func TestMain(m *testing.M) {
	os.Exit(guarded.Main(m, patience, func(c *guarded.Cluster, _ *envtest.Environment) {
		cluster, config, admin = c, c.Config, c.Admin
	}))
}
