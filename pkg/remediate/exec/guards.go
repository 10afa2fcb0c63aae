// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/readiness"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// Guards reads what the guards say, as a reader has it.
type Guards interface {
	Read(ctx context.Context, from client.Reader) (GuardView, error)
}

// GuardView is what the guards said at one moment.
type GuardView interface {
	// Rules for an object with these labels; kept is the status of its
	// Baseline. Empty rules: no guard in force selects it.
	Rules(namespace string, target *v1alpha1.PlanTarget, labels map[string]string, kept *v1alpha1.BaselineStatus) specguard.Rules
	// Frozen names the guard of a target that sees a mass drift; empty when none does.
	Frozen(namespace string, target *v1alpha1.PlanTarget) string
	// Holds says why a target that the rules select is not to be written all the
	// same: a guard is suspended, or says that Plumbline writes nothing. Empty when
	// nothing does.
	Holds(namespace string, b *v1alpha1.Baseline, rules specguard.Rules, annotations map[string]string) string
	// Readiness returns the rule of people that says when a target is ready; nil when
	// there is none for its kind.
	Readiness(namespace string, target *v1alpha1.PlanTarget) *readiness.Rule
	// Environment names the one that a namespace belongs to; empty when none.
	Environment(namespace string) string
	// Terminating says that a namespace is being deleted, or is gone.
	Terminating(namespace string) bool
}

// Rollouts reads which runs of releases are under way.
type Rollouts interface {
	// Holders names the run that has each of the targets as a variation; empty for those that none
	// has.
	Holders(ctx context.Context, from client.Reader, namespace string, targets []v1alpha1.PlanTarget) ([]string, error)
}

// Bodies reads the body that a revision holds, live. An error that is
// apierrors.IsNotFound says that there is none; [ErrDamaged], that it is not one.
type Bodies interface {
	Body(ctx context.Context, namespace, revision string) ([]byte, error)
	// FieldManagers returns the managedFields of the object when the body was authorized;
	// none when they are not known.
	FieldManagers(ctx context.Context, namespace, revision string) ([]metav1.ManagedFieldsEntry, error)
}
