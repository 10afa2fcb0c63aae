// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// SystemNamespace is the usual one of Plumbline itself.
const SystemNamespace = "plumbline-system"

// The scopes of ledgers.
const (
	ScopeCluster     = "Cluster"
	ScopeEnvironment = "Environment"
)

// SeveralSystemsError says that more than one namespace has ledgers or Deployments of Plumbline, so that a person has
// to tell in which of them Plumbline runs.
type SeveralSystemsError struct {
	// Namespaces in the order of their names.
	Namespaces []string
}

func (e *SeveralSystemsError) Error() string {
	return "there are installations in the namespaces " + strings.Join(e.Namespaces, ", ") + ": say in which of them Plumbline runs"
}

// ListLedgers lists those of Plumbline's namespace. Without a name for it, it is where
// ledgers are, or the usual one for a user who has rights there alone. The error is a
// SeveralSystemsError if there is more than one such place.
func ListLedgers(ctx context.Context, c client.Reader, system string) ([]v1alpha1.RemediationLedger, error) {
	list := &v1alpha1.RemediationLedgerList{}
	err := c.List(ctx, list, client.InNamespace(system))
	if apierrors.IsForbidden(err) && system == "" {
		err = c.List(ctx, list, client.InNamespace(SystemNamespace))
	}
	if err != nil {
		return nil, err
	}
	var namespaces []string
	for i := range list.Items {
		if namespace := list.Items[i].Namespace; !slices.Contains(namespaces, namespace) {
			namespaces = append(namespaces, namespace)
		}
	}
	if len(namespaces) > 1 {
		slices.Sort(namespaces)
		return nil, &SeveralSystemsError{Namespaces: namespaces}
	}
	return list.Items, nil
}

// NoLedgerError says that an Environment, or the cluster, has no ledger: the executor makes
// it when it first runs.
type NoLedgerError struct {
	// Environment is empty for the cluster.
	Environment string
}

func (e *NoLedgerError) Error() string {
	what := "the cluster"
	if e.Environment != "" {
		what = "Environment " + e.Environment
	}
	return what + " has no RemediationLedger: the executor makes it when it first runs, and until then there is no remediation"
}

// FindLedger finds the ledger of an Environment, or with none that of the cluster. The error
// is a NoLedgerError.
func FindLedger(ledgers []v1alpha1.RemediationLedger, environment string) (*v1alpha1.RemediationLedger, error) {
	for i := range ledgers {
		l := &ledgers[i]
		if (environment == "" && l.Spec.Scope == ScopeCluster) || (environment != "" && l.Spec.Scope == ScopeEnvironment && l.Name == environment) {
			return l, nil
		}
	}
	return nil, &NoLedgerError{Environment: environment}
}

// IsHaltAsWanted reports whether a ledger is halted, or is not, as it is wanted. A halt that
// stands keeps its user and its reason.
func IsHaltAsWanted(l *v1alpha1.RemediationLedger, halt bool) bool {
	return (l.Spec.Halt != nil) == halt
}

// RequestHalt halts all that a ledger grants, or takes the halt back if halt is nil. What is
// stored is in the ledger afterwards.
func RequestHalt(ctx context.Context, c client.Client, ledger *v1alpha1.RemediationLedger, halt *v1alpha1.LedgerHalt, dryRun bool) error {
	content := any(nil)
	if halt != nil {
		content = map[string]any{"requestedBy": halt.RequestedBy, "reason": halt.Reason}
	}
	return Submit(ctx, c, "its ledger", ledger, func(*v1alpha1.RemediationLedger) (map[string]any, error) {
		return map[string]any{"spec": map[string]any{"halt": content}}, nil
	}, patchOptions(dryRun)...)
}
