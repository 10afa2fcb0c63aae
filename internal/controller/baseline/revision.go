// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// Bounds of what is stored and cached.
const (
	// maxRevisions is how many revisions of one Baseline are kept.
	maxRevisions = 3
	// revisionBudget bounds the revisions of one Baseline together, in
	// compressed bytes; the newest is always kept.
	revisionBudget = 768 << 10
	// maxCachedBodies bounds the compressed bodies kept in memory, in bytes.
	maxCachedBodies = 16 << 20
	// maxLabelValue is the API server's limit of a label's value.
	maxLabelValue = 63
)

// Annotations of a BaselineRevision that complete spec.authorized after a crash.
const (
	annotationAuthorizedUID = "plumbline.dev/authorized-uid"
	annotationOrigin        = "plumbline.dev/origin"
)

// errDamaged says that a stored body is not what its Baseline says.
var errDamaged = errors.New("the stored body is damaged")

// storeRevisions creates the revisions of a decision, oldest first. Of a burst
// only those are stored that would be kept.
func (r *Reconciler) storeRevisions(ctx context.Context, s *subject, d *decision) error {
	first := max(0, len(d.revisions)-maxRevisions)
	for _, a := range d.revisions[first:] {
		if err := r.storeRevision(ctx, s, a); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reconciler) storeRevision(ctx context.Context, s *subject, a specguard.AuthorizeRevision) error {
	revision := newRevision(s.baseline, a)
	err := r.Client.Create(ctx, revision)
	if apierrors.IsAlreadyExists(err) {
		err = r.takeOver(ctx, s, revision)
	}
	if err != nil {
		return fmt.Errorf("storing revision %s: %w", revision.Name, err)
	}
	r.bodies.put(bodyKey{s.key.Namespace, revision.Name, revision.Spec.Hash}, revision.Spec.Body)
	return nil
}

// takeOver deals with a revision of the same number: a crash left it before the
// Baseline named it. The same state is used as it is; another one was decided
// from what is no longer so, and is replaced.
func (r *Reconciler) takeOver(ctx context.Context, s *subject, wanted *v1alpha1.BaselineRevision) error {
	var found v1alpha1.BaselineRevision
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(wanted), &found); err != nil {
		return fmt.Errorf("reading it: %w", err)
	}
	if owned(&found, s.baseline) && found.Spec.Hash == wanted.Spec.Hash && found.Spec.By == wanted.Spec.By {
		return nil
	}
	if current := s.baseline.Spec.Authorized; current != nil && owned(&found, s.baseline) && current.Number >= wanted.Spec.Number {
		// Somebody authorized this number: what we decided on is outdated.
		return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("baselines").GroupResource(), s.baseline.Name,
			errors.New("this number is authorized already"))
	}
	if err := r.unmoved(ctx, s.baseline); err != nil {
		return err
	}
	if err := r.Client.Delete(ctx, &found, exactly(&found)...); err != nil {
		return fmt.Errorf("removing the leftovers of a crash: %w", err)
	}
	if err := r.Client.Create(ctx, wanted); err != nil {
		return fmt.Errorf("replacing the leftovers of a crash: %w", err)
	}
	return nil
}

// unmoved fails with a conflict if a Baseline is not any more as it was decided
// on: then the revision may be one that another assessor has authorized, and
// only the write of the Baseline itself would notice.
func (r *Reconciler) unmoved(ctx context.Context, b *v1alpha1.Baseline) error {
	var live v1alpha1.Baseline
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(b), &live); err != nil {
		return fmt.Errorf("reading the baseline: %w", err)
	}
	if live.UID == b.UID && live.ResourceVersion == b.ResourceVersion {
		return nil
	}
	return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("baselines").GroupResource(), b.Name,
		errors.New("it was written meanwhile"))
}

// exactly makes a deletion concern one version of one object.
func exactly(o client.Object) []client.DeleteOption {
	uid, rv := o.GetUID(), o.GetResourceVersion()
	return []client.DeleteOption{client.Preconditions{UID: &uid, ResourceVersion: &rv}}
}

func owned(revision *v1alpha1.BaselineRevision, b *v1alpha1.Baseline) bool {
	for _, owner := range revision.OwnerReferences {
		if owner.UID == b.UID {
			return true
		}
	}
	return false
}

func newRevision(b *v1alpha1.Baseline, a specguard.AuthorizeRevision) *v1alpha1.BaselineRevision {
	return &v1alpha1.BaselineRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: b.Namespace,
			Name:      specguard.RevisionName(b.Name, a.Number),
			Labels: map[string]string{
				v1alpha1.LabelBaseline:   LabelValue(b.Name),
				v1alpha1.LabelTargetKind: b.Spec.Target.Kind,
			},
			Annotations: map[string]string{
				annotationAuthorizedUID: a.UID,
				annotationOrigin:        string(a.Origin),
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: "Baseline", Name: b.Name, UID: b.UID,
			}},
		},
		Spec: v1alpha1.BaselineRevisionSpec{
			BaselineName: b.Name, Number: a.Number, Hash: string(a.Hash), By: a.By, AuthorizationTime: metav1.NewTime(a.At),
			Encoding: v1alpha1.BodyEncodingZstd, Body: kube.Compress(a.Body), Size: int64(len(a.Body)),
			FieldManagers: kube.EncodeFieldManagers(a.Managers), Release: a.Release,
		},
	}
}

// encodedSize measures a body as a BaselineRevision holds it. A small body is not
// compressed for that: compression adds a few bytes at most.
func encodedSize(body []byte) int {
	if len(body) <= v1alpha1.MaxBodyBytes/2 {
		return len(body)
	}
	return len(kube.Compress(body))
}

// LabelValue is the value of the label plumbline.dev/baseline for a Baseline's
// name: the name itself, or a digest of it when it is longer than a label may be.
func LabelValue(name string) string {
	if len(name) <= maxLabelValue {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:16])
}

// complete carries out a decision that a crash interrupted: a revision with the
// number after the authorized one was stored from a seen transition, and nobody
// but the assessor may store revisions.
func (r *Reconciler) complete(ctx context.Context, s *subject) error {
	if !s.cold || s.baseline == nil || !s.moved() {
		return nil
	}
	number := int64(1)
	if s.baseline.Spec.Authorized != nil {
		number = s.baseline.Spec.Authorized.Number + 1
	}
	var found v1alpha1.BaselineRevision
	err := r.Live.Get(ctx, types.NamespacedName{
		Namespace: s.baseline.Namespace, Name: specguard.RevisionName(s.baseline.Name, number),
	}, &found)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking for an interrupted decision: %w", err)
	}
	if !owned(&found, s.baseline) || found.Spec.Number != number {
		return nil
	}
	next := s.baseline.DeepCopy()
	next.Spec.Authorized = authorizedBy(&found)
	if err := r.Client.Update(ctx, next); err != nil {
		return fmt.Errorf("completing an interrupted decision: %w", err)
	}
	r.Metrics.completed.Inc()
	s.baseline = next
	s.state = specguard.FromBaseline(next, nil)
	return nil
}

// moved says that the object is not what the Baseline last saw.
func (s *subject) moved() bool {
	first := s.view.Current
	if len(s.view.Pending) > 0 {
		first = s.view.Pending[0].Prev
	}
	return s.baseline.Status.State == "" || first == nil ||
		string(first.FullHash) != s.baseline.Status.Observed.FullHash
}

func authorizedBy(revision *v1alpha1.BaselineRevision) *v1alpha1.AuthorizedState {
	return &v1alpha1.AuthorizedState{
		UID:               revision.Annotations[annotationAuthorizedUID],
		Hash:              revision.Spec.Hash,
		Revision:          revision.Name,
		Number:            revision.Spec.Number,
		By:                revision.Spec.By,
		AuthorizationTime: revision.Spec.AuthorizationTime,
		Origin:            v1alpha1.Origin(revision.Annotations[annotationOrigin]),
		Release:           revision.Spec.Release.DeepCopy(),
	}
}

// trim removes the revisions that fell out of the history. Their numbers are
// known, so nothing is listed. That it fails is not worth a retry: the next
// authorized state removes them too.
func (r *Reconciler) trim(ctx context.Context, s *subject, d *decision) {
	if len(d.revisions) == 0 {
		return
	}
	newest := d.revisions[len(d.revisions)-1]
	body, _ := r.bodies.get(bodyKey{s.key.Namespace, specguard.RevisionName(s.baseline.Name, newest.Number), string(newest.Hash)})
	keep := kept(len(body))
	oldest := newest.Number - int64(len(d.revisions)) - maxRevisions
	for number := newest.Number - keep; number > max(0, oldest); number-- {
		name := specguard.RevisionName(s.baseline.Name, number)
		if ready := s.baseline.Status.LastReady; ready != nil && ready.Revision == name {
			continue // a rollback leads there, and nowhere else
		}
		if !r.drop(ctx, s, name) {
			return
		}
	}
}

func (r *Reconciler) drop(ctx context.Context, s *subject, name string) bool {
	revision := &v1alpha1.BaselineRevision{ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: name}}
	if err := r.Client.Delete(ctx, revision); client.IgnoreNotFound(err) != nil {
		r.Metrics.trimFailures.Inc()
		return false
	}
	return true
}

// dropFormerReady removes the revision that was kept because it was the last one
// seen ready, once another is, and it is not one of the newest.
func (r *Reconciler) dropFormerReady(ctx context.Context, s *subject, before *v1alpha1.ReadyRevision) {
	now, authorized := s.baseline.Status.LastReady, s.baseline.Spec.Authorized
	if before == nil || now == nil || authorized == nil || before.Revision == now.Revision {
		return
	}
	for number := authorized.Number; number > authorized.Number-maxRevisions; number-- {
		if before.Revision == specguard.RevisionName(s.baseline.Name, number) {
			return
		}
	}
	r.drop(ctx, s, before.Revision)
}

// kept is how many revisions of the newest one's size fit the budget.
func kept(size int) int64 {
	if size <= 0 {
		return maxRevisions
	}
	return int64(min(max(revisionBudget/size, 1), maxRevisions))
}

// body loads the authorized body.
func (r *Reconciler) body(ctx context.Context, s *subject, a *v1alpha1.AuthorizedState) ([]byte, error) {
	if a == nil {
		return nil, nil
	}
	key := bodyKey{s.key.Namespace, a.Revision, a.Hash}
	compressed, cached := r.bodies.get(key)
	if !cached {
		var revision v1alpha1.BaselineRevision
		if err := r.Live.Get(ctx, types.NamespacedName{Namespace: key.namespace, Name: key.revision}, &revision); err != nil {
			return nil, fmt.Errorf("reading revision %s: %w", a.Revision, err)
		}
		compressed = revision.Spec.Body
	}
	body, err := kube.Decompress(compressed)
	if err != nil {
		return nil, fmt.Errorf("revision %s: %w: %w", a.Revision, errDamaged, err)
	}
	r.bodies.put(key, compressed)
	return body, nil
}

// bodyKey names a stored body; the hash tells a revision that was replaced.
type bodyKey struct{ namespace, revision, hash string }

// bodyCache keeps recently used compressed bodies, up to a number of bytes.
type bodyCache struct {
	mu    sync.Mutex
	limit int
	size  int
	order *list.List // of *cachedBody, most recent first
	byKey map[bodyKey]*list.Element
}

type cachedBody struct {
	key  bodyKey
	body []byte
}

func newBodyCache(limit int) *bodyCache {
	return &bodyCache{limit: limit, order: list.New(), byKey: map[bodyKey]*list.Element{}}
}

func (c *bodyCache) get(key bodyKey) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byKey[key]
	if !ok {
		return nil, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*cachedBody).body, true
}

func (c *bodyCache) put(key bodyKey, body []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.byKey[key]; ok {
		c.drop(e)
	}
	c.byKey[key] = c.order.PushFront(&cachedBody{key, body})
	c.size += len(body)
	for c.size > c.limit && c.order.Len() > 1 {
		c.drop(c.order.Back())
	}
}

func (c *bodyCache) drop(e *list.Element) {
	cached := e.Value.(*cachedBody)
	c.order.Remove(e)
	delete(c.byKey, cached.key)
	c.size -= len(cached.body)
}
