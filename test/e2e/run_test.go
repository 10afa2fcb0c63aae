// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"testing"

	"github.com/plumbline-dev/plumbline/test/harness"
)

func runWithStdin(t *testing.T, c *harness.Cluster, stdin string, args ...string) error {
	t.Helper()
	_, err := c.Run(context.WithoutCancel(t.Context()), args, harness.WithStdin(stdin))
	return err
}
