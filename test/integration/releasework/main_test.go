// SPDX-License-Identifier: Apache-2.0

//go:build integration

package releasework

import (
	"fmt"
	"os"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// patience bounds every wait. A work that waits for a right is looked at again after 30 s.
const patience = time.Minute

// One API server serves all tests; each has a namespace of its own.
var (
	config  *rest.Config
	admin   client.Client
	cluster *guarded.Cluster
	// auditLog is the API server's, with the bodies of what the executor writes.
	auditLog *remediation.AuditLog
)

func TestMain(m *testing.M) {
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	directory, err := os.MkdirTemp("", "plumbline-releasework-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "making a directory:", err)
		return 1
	}
	defer func() { _ = os.RemoveAll(directory) }() // under the system's temporary directory
	if auditLog, err = remediation.NewAuditLog(directory); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return guarded.Main(m, patience, func(c *guarded.Cluster, _ *envtest.Environment) {
		cluster, config, admin = c, c.Config, c.Admin
	}, remediation.WithAudit(auditLog))
}
