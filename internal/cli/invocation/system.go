// SPDX-License-Identifier: Apache-2.0

package invocation

import (
	"context"
	"errors"
	"fmt"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// FindSystemNamespace is where Plumbline runs: named by the user, else where its
// ledgers or Deployments are, else the usual one.
func (c *Cluster) FindSystemNamespace(ctx context.Context, named string) (string, error) {
	if named != "" {
		return named, nil
	}
	system, err := actions.FindSystem(ctx, c)
	if err != nil {
		return "", fmt.Errorf("looking for Plumbline's namespace (--system-namespace names it): %w", hintSystem(err))
	}
	return system, nil
}

// ListLedgers lists the ledgers of the system namespace, which the user may have to name.
func (c *Cluster) ListLedgers(ctx context.Context, system string) ([]v1alpha1.RemediationLedger, error) {
	ledgers, err := actions.ListLedgers(ctx, c, system)
	return ledgers, hintSystem(err)
}

// hintSystem names the flag that tells several systems apart.
func hintSystem(err error) error {
	if _, is := errors.AsType[*actions.SeveralSystemsError](err); is {
		return fmt.Errorf("%w, with --system-namespace", err)
	}
	return err
}
