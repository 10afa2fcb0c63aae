// SPDX-License-Identifier: Apache-2.0

package selftest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

const (
	// lookEvery is how often the Baseline is read while a finding is awaited.
	lookEvery = 100 * time.Millisecond
	// callTimeout bounds one call.
	callTimeout = 10 * time.Second
	// startAgain is how soon the start is tried again.
	startAgain = 5 * time.Second
)

var deployments = canon.GVK{Group: "apps", Version: "v1", Kind: "Deployment"}

// Cluster is what the self-test asks of the API server.
type Cluster interface {
	// User is the name by which the API server knows the self-test.
	User(ctx context.Context) (string, error)
	// Object is the self-test's Deployment as JSON.
	Object(ctx context.Context) ([]byte, error)
	// Patch merges into it and returns it as stored.
	Patch(ctx context.Context, patch []byte) ([]byte, error)
	// Baseline of it, nil when there is none.
	Baseline(ctx context.Context) (*v1alpha1.Baseline, error)
}

// Outcome of a round.
type Outcome struct {
	Result Result
	// After is how long the finding took; zero unless found.
	After time.Duration
}

// Runner runs rounds.
type Runner struct {
	Cluster Cluster
	// Period between two rounds, MinPeriod or more.
	Period time.Duration
	// Deadline by which a drift has to be found; less than half of Period.
	Deadline time.Duration
	Metrics  *Metrics
	Clock    clock.WithTicker
	Log      logr.Logger
	// Ready is told once the self-test could read its object; may be nil.
	Ready func()
}

// Run runs a round in every slot until ctx ends.
func (r *Runner) Run(ctx context.Context) error {
	user, err := r.start(ctx)
	if err != nil {
		return nil //nolint:nilerr // only the end of ctx ends the start
	}
	for {
		slot := SlotAt(r.Clock.Now(), r.Period)
		if !r.wait(ctx, slot.Begin.Sub(r.Clock.Now())) {
			return nil
		}
		r.Metrics.ended(r.Round(ctx, slot, user), r.Clock.Now())
		if !r.wait(ctx, time.Millisecond) { // out of this slot's first instant
			return nil
		}
	}
}

// start finds out who the self-test is, and puts back what an earlier run left.
func (r *Runner) start(ctx context.Context) (string, error) {
	failing := false
	for {
		user, err := r.Cluster.User(ctx)
		if err == nil {
			err = r.rest(ctx)
		}
		if err == nil {
			if r.Ready != nil {
				r.Ready()
			}
			return user, nil
		}
		if !failing && ctx.Err() == nil {
			r.Log.Info("the self-test cannot start yet", "error", err.Error())
			failing = true
		}
		if !r.wait(ctx, startAgain) {
			return "", ctx.Err()
		}
	}
}

// Round drifts, waits until it is found, and puts back.
func (r *Runner) Round(ctx context.Context, slot Slot, user string) Outcome {
	outcome, err := r.drift(ctx, slot.knob, user)
	// What was drifted is put back also when nobody found it, or ctx is over.
	back, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	if restErr := r.rest(back); restErr != nil {
		err = errors.Join(err, restErr)
	}
	if err != nil {
		r.Log.Error(err, "a round of the self-test failed", "path", slot.knob.path())
		return Outcome{Result: ResultError}
	}
	r.Log.Info("selftest.round", "path", slot.knob.path(), "result", outcome.Result, "after_ms", outcome.After.Milliseconds())
	return outcome
}

func (r *Runner) drift(ctx context.Context, f knob, user string) (Outcome, error) {
	if err := r.rest(ctx); err != nil { // somebody else's change would be found as ours
		return Outcome{}, err
	}
	stored, err := r.Cluster.Patch(ctx, f.patch(f.drift))
	if err != nil {
		return Outcome{}, err
	}
	written := r.Clock.Now()
	stamps, err := JudgeStamps(stored, user)
	if err != nil {
		return Outcome{}, err
	}
	r.Metrics.stamped(stamps)
	return r.await(ctx, f, user, written)
}

// await reads the Baseline until it names path and user, or the deadline has
// passed. A read that fails tells nothing; the next one may.
func (r *Runner) await(ctx context.Context, f knob, user string, written time.Time) (Outcome, error) {
	var unnamed time.Duration
	var failure error
	for {
		b, err := r.Cluster.Baseline(ctx)
		after := r.Clock.Now().Sub(written)
		switch {
		case err != nil:
			failure = err
		case b != nil:
			failure = nil
			switch JudgeFinding(b, f.path(), user) {
			case SeenNamed:
				return Outcome{Result: ResultFound, After: after}, nil
			case SeenUnnamed: // the name may come later
				if unnamed == 0 {
					unnamed = after
				}
			case SeenNot:
			}
		}
		if after >= r.Deadline || !r.wait(ctx, lookEvery) {
			break
		}
	}
	switch {
	case ctx.Err() != nil:
		return Outcome{}, ctx.Err()
	case unnamed > 0:
		return Outcome{Result: ResultUnnamed, After: unnamed}, nil
	case failure != nil:
		return Outcome{}, failure
	default:
		return Outcome{Result: ResultNotFound}, nil
	}
}

// rest puts every field back that is away.
func (r *Runner) rest(ctx context.Context) error {
	stored, err := r.Cluster.Object(ctx)
	if err != nil {
		return err
	}
	moved, err := away(stored)
	if err != nil {
		return err
	}
	for _, f := range moved {
		if _, err := r.Cluster.Patch(ctx, f.patch(f.rest)); err != nil {
			return err
		}
	}
	return nil
}

// wait says whether ctx still lives afterwards.
func (r *Runner) wait(ctx context.Context, d time.Duration) bool {
	timer := r.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return ctx.Err() == nil
	}
}

// APIServer is the Cluster behind a client.
type APIServer struct {
	client          kubernetes.Interface
	baselines       rest.Interface
	namespace, name string
}

// NewAPIServer returns the Cluster of one Deployment.
func NewAPIServer(config *rest.Config, namespace, name string) (*APIServer, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the self-test's client: %w", err)
	}
	return &APIServer{client: client, baselines: client.RESTClient(), namespace: namespace, name: name}, nil
}

// User implements Cluster.
func (a *APIServer) User(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	me, err := a.client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("asking for the self-test's user name: %w", err)
	}
	return me.Status.UserInfo.Username, nil
}

// Object implements Cluster.
func (a *APIServer) Object(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	raw, err := a.client.AppsV1().RESTClient().Get().SetHeader("Accept", "application/json").
		Namespace(a.namespace).Resource("deployments").Name(a.name).DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the self-test's object: %w", err)
	}
	return raw, nil
}

// Patch implements Cluster.
func (a *APIServer) Patch(ctx context.Context, patch []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	raw, err := a.client.AppsV1().RESTClient().Patch(types.MergePatchType).SetHeader("Accept", "application/json").
		Namespace(a.namespace).Resource("deployments").Name(a.name).Param("fieldManager", "plumbline-selftest").Body(patch).DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("writing the self-test's object: %w", err)
	}
	return raw, nil
}

// Baseline implements Cluster.
func (a *APIServer) Baseline(ctx context.Context) (*v1alpha1.Baseline, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	gv := v1alpha1.GroupVersion
	raw, err := a.baselines.Get().SetHeader("Accept", "application/json").
		AbsPath("/apis", gv.Group, gv.Version, "namespaces", a.namespace, "baselines",
			specguard.BaselineName("deployments", deployments.Group, a.name)).DoRaw(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the self-test's baseline: %w", err)
	}
	return decodeBaseline(raw)
}
