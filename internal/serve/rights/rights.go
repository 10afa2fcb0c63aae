// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/internal/serve/answers"
)

const (
	// lasts is how long an answer is remembered, and entries how many answers are: one for each right of some
	// hundred users in some hundred namespaces.
	lasts   = 10 * time.Second
	entries = 50_000
	// atOnce is how many namespaces one caller has asked for at once.
	atOnce = 16
)

// Reviewer asks the API server whether a user has a right.
type Reviewer interface {
	Review(ctx context.Context, spec *authorizationv1.SubjectAccessReviewSpec) (allowed bool, err error)
}

// Rights knows the rights of users.
type Rights struct {
	reviewer Reviewer
	known    *answers.Memory[bool]
}

// New makes Rights without any answer yet.
func New(reviewer Reviewer, passive clock.PassiveClock, counts answers.Counts) *Rights {
	return &Rights{reviewer: reviewer, known: answers.New[bool](passive, entries, counts)}
}

// Right is one to read objects. An empty namespace is all namespaces, or the whole cluster, and an empty name is each one.
type Right struct {
	Verb string
	// Resource is plural, and may have a subresource behind a slash.
	Resource        schema.GroupResource
	Namespace, Name string
}

// Allows tells whether a user has a right, in all namespaces or in that of the right.
func (r *Rights) Allows(ctx context.Context, user *authenticationv1.UserInfo, right Right) (bool, error) {
	everywhere := right
	everywhere.Namespace = ""
	allowed, err := r.allows(ctx, user, everywhere)
	if err != nil || allowed || right.Namespace == "" {
		return allowed, err
	}
	return r.allows(ctx, user, right)
}

// FilterNamespaces returns those of several namespaces in which a user has a right, of whom it is known that they do not have it in
// all.
func (r *Rights) FilterNamespaces(ctx context.Context, user *authenticationv1.UserInfo, right Right, namespaces []string) (map[string]bool, error) {
	var lock sync.Mutex
	granted := map[string]bool{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, namespace := range namespaces {
		in := right
		in.Namespace = namespace
		group.Go(func() error {
			allowed, err := r.allows(ctx, user, in)
			if err != nil || !allowed {
				return err
			}
			lock.Lock()
			defer lock.Unlock()
			granted[namespace] = true
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return granted, nil
}

// allows answers one question.
func (r *Rights) allows(ctx context.Context, user *authenticationv1.UserInfo, right Right) (bool, error) {
	resource, subresource, _ := strings.Cut(right.Resource.Resource, "/")
	spec := &authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extraOf(user),
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: right.Verb, Group: right.Resource.Group, Resource: resource, Subresource: subresource, Namespace: right.Namespace, Name: right.Name,
		},
	}
	question, err := json.Marshal(spec)
	if err != nil {
		return false, fmt.Errorf("encoding a right: %w", err)
	}
	digest := sha256.Sum256(question)
	allowed, err := r.known.Get(ctx, string(digest[:]), func(ctx context.Context) (bool, time.Duration, error) {
		allowed, err := r.reviewer.Review(ctx, spec)
		return allowed, lasts, err
	})
	if err != nil {
		return false, fmt.Errorf("asking for the right to %s %s: %w", right.Verb, right.Resource.Resource, err)
	}
	return allowed, nil
}

func extraOf(user *authenticationv1.UserInfo) map[string]authorizationv1.ExtraValue {
	if len(user.Extra) == 0 {
		return nil
	}
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for name, values := range user.Extra {
		extra[name] = authorizationv1.ExtraValue(values)
	}
	return extra
}

// NewReviewer asks the API server of a client.
func NewReviewer(client authorizationclient.SubjectAccessReviewInterface) Reviewer {
	return reviewer{client}
}

type reviewer struct {
	client authorizationclient.SubjectAccessReviewInterface
}

// Review implements Reviewer.
func (r reviewer) Review(ctx context.Context, spec *authorizationv1.SubjectAccessReviewSpec) (bool, error) {
	answered, err := r.client.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: *spec}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return answered.Status.Allowed && !answered.Status.Denied, nil
}
