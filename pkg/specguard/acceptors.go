// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// acceptors are the only writers who may accept under a guard.
type acceptors struct {
	writers
	// names of these writers, for the message of a refusal.
	names string
}

// WithAcceptBy returns the guard with the writers who may accept; with nil, the rights
// decide. With errors the guard lets no user accept.
func (g *Guard) WithAcceptBy(w *v1alpha1.Writers) (*Guard, field.ErrorList) {
	if w == nil {
		return g, nil
	}
	compiled, errs := compileWriters(*w, field.NewPath("spec", "acceptBy"))
	if len(errs) > 0 {
		compiled = writers{}
	}
	limited := *g
	limited.acceptBy = &acceptors{compiled, nameWriters(w)}
	return &limited, errs
}

// WithAcceptByAuthor returns the guard with its decision about writers who accept their own changes.
// An unknown value forbids.
func (g *Guard) WithAcceptByAuthor(value v1alpha1.Permission) *Guard {
	limited := *g
	limited.twoPersons = value != "" && value != v1alpha1.Allowed
	return &limited
}

func nameWriters(w *v1alpha1.Writers) string {
	names := slices.Clone(w.Users)
	for _, group := range w.Groups {
		names = append(names, "group "+group)
	}
	for _, account := range w.ServiceAccounts {
		names = append(names, serviceAccountPrefix+account.Namespace+":"+account.Name)
	}
	for _, namespace := range w.ServiceAccountNamespaces {
		names = append(names, "service accounts of "+namespace)
	}
	for i := range names {
		names[i] = diff.TruncateText(names[i], maxAcceptorBytes)
	}
	if len(names) == 0 {
		return "nobody"
	}
	return joinBounded(names)
}

// maxAcceptorBytes bounds a name in a message: five of them leave room for the rest.
const maxAcceptorBytes = 100

// mayAccept returns the refusals of the guards that do not let a user accept, with the
// users who may; empty when there are none. A suspended guard refuses as well, because
// an accepted state stays authorized.
func (r Rules) mayAccept(id Identity) (refusal string) {
	var refusals []string
	for _, g := range slices.Concat(r.guards, r.vetoing) {
		if g.acceptBy != nil && !g.acceptBy.match(id) {
			refusals = append(refusals, fmt.Sprintf("%s lets only these accept: %s", g.ref, g.acceptBy.names))
		}
	}
	slices.Sort(refusals)
	return strings.Join(refusals, "; ")
}

// refuseOwn returns why a guard that wants two persons refuses that a user accepts these findings;
// empty if none does.
func (r Rules) refuseOwn(user string, findings []v1alpha1.Finding, total int) string {
	for _, g := range slices.Concat(r.guards, r.vetoing) {
		if g.twoPersons {
			if why := findOwn(user, findings, total); why != "" {
				return fmt.Sprintf("%s lets no writer accept a change of their own: %s", g.ref, why)
			}
		}
	}
	return ""
}

// findOwn returns the first finding that the user may have written; empty without one.
func findOwn(user string, findings []v1alpha1.Finding, total int) string {
	for i := range findings {
		path := cmp.Or(findings[i].Path, "the object")
		switch actor := &findings[i].Actor; {
		case actor.User == user:
			return fmt.Sprintf("%s has written %s", user, path)
		case actor.User == "" || actor.Class == v1alpha1.ActorUnknown:
			return fmt.Sprintf("the writer of %s is not known", path)
		}
	}
	if total > len(findings) {
		return "not all findings have their writers in the status"
	}
	return ""
}

// refuseAccept tells whether the guards refuse the request to accept, and says so.
func (s *step) refuseAccept() bool {
	request := s.in.Accept
	refusal := s.in.Rules.mayAccept(Identity{User: request.RequestedBy, Groups: request.RequestedByGroups})
	if refusal == "" {
		refusal = s.in.Rules.refuseOwn(request.RequestedBy, s.st.Findings, s.st.FindingsTotal)
	}
	if refusal == "" {
		return false
	}
	why := fmt.Sprintf("%s may not accept: %s", request.RequestedBy, refusal)
	s.effects = append(s.effects, RefuseAccept{Why: why})
	s.event(EventWarning, ReasonAcceptRefused, "%s", why)
	return true
}
