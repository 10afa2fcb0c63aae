// SPDX-License-Identifier: Apache-2.0

//go:build integration

package remediate

import (
	"os"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/plumbline-dev/plumbline/test/harness/guarded"
)

// patience bounds every wait.
const patience = 20 * time.Second

// One API server serves all tests; each has a namespace of its own.
var (
	config *rest.Config
	admin  client.Client
	// cluster is where the worlds are.
	cluster *guarded.Cluster
)

func TestMain(m *testing.M) {
	os.Exit(guarded.Main(m, patience, func(c *guarded.Cluster, _ *envtest.Environment) {
		cluster, config, admin = c, c.Config, c.Admin
	}))
}
