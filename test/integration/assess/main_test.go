// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"context"
	"os"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
)

const (
	// assessorUser is the chart's service account of the assessor.
	assessorUser = "system:serviceaccount:plumbline-system:plumbline-assessor"
	// patience bounds every wait.
	patience = 20 * time.Second
)

// One API server serves all tests; each has a namespace of its own.
var (
	config *rest.Config
	admin  client.Client
	// cluster is where the worlds are.
	cluster *guarded.Cluster
	// kubeconfig is that of config, as a file's content.
	kubeconfig []byte
)

func TestMain(m *testing.M) {
	os.Exit(guarded.Main(m, patience, func(c *guarded.Cluster, server *envtest.Environment) {
		cluster, config, admin, kubeconfig = c, c.Config, c.Admin, server.KubeConfig
	}))
}

func awaitStamp(ctx context.Context) error { return apiserver.AwaitStamp(ctx, admin, patience) }
