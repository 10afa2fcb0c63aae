// SPDX-License-Identifier: Apache-2.0

package blame

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// exception is a SpecGuardException that excuses a change of the object.
type exception struct {
	Name        string       `json:"name"`
	Ticket      string       `json:"ticket,omitempty"`
	Reason      string       `json:"reason,omitempty"`
	RequestedBy string       `json:"requestedBy,omitempty"`
	EndTime     *metav1.Time `json:"endTime,omitempty"`
	// Missing says why the user cannot see more than the name; empty if the user sees all.
	Missing string `json:"missing,omitempty"`
}

// findExceptions reads the exceptions that masks name, each once. An exception that is gone, or that the user may not
// read, stays in the report by its name.
func findExceptions(ctx context.Context, c *invocation.Cluster, namespace string, masks []v1alpha1.Mask) ([]exception, error) {
	var found []exception
	seen := map[string]bool{}
	for i := range masks {
		name, is := specguard.ExceptionOf(masks[i].Rule)
		if !is || seen[name] {
			continue
		}
		seen[name] = true
		var e v1alpha1.SpecGuardException
		switch err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &e); {
		case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
			found = append(found, exception{Name: name, Missing: "it is gone"})
		case apierrors.IsForbidden(err):
			found = append(found, exception{Name: name, Missing: "you may not get specguardexceptions in namespace " + namespace})
		case err != nil:
			return nil, fmt.Errorf("reading exception %s/%s: %w", namespace, name, err)
		default:
			in := &e.Spec
			found = append(found, exception{Name: name, Ticket: in.Ticket, Reason: in.Reason, RequestedBy: in.RequestedBy, EndTime: &in.EndTime})
		}
	}
	return found, nil
}

// describe names an exception with its ticket, its author and its end.
func (e exception) describe() string {
	if e.Missing != "" {
		return fmt.Sprintf("Exception %s: %s", e.Name, e.Missing)
	}
	text := fmt.Sprintf("Exception %s: ticket %s, by %s, until %s", e.Name, e.Ticket, wording.NameWriter(e.RequestedBy), wording.FormatTimestamp(*e.EndTime))
	if e.Reason != "" {
		text += fmt.Sprintf(": %q", e.Reason)
	}
	return text
}
