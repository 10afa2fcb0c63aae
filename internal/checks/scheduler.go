// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/guarddefaults"
	"github.com/plumbline-dev/plumbline/internal/guards"
	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/pkg/specguard/resync"
)

const (
	// DefaultMaxConcurrent is how many checks go on at once in the whole
	// installation, for each threshold.
	DefaultMaxConcurrent = 10
	// startsPerSecond is the pace of checks when very many are due, as when they
	// are switched on: 10,000 objects are through within ten minutes.
	startsPerSecond rate.Limit = 20
	// startsAtOnce is the number of checks that may start together before the pace counts.
	startsAtOnce = 10
	// roundSpacing is the least time between two looks at the agenda: with 10,000
	// objects due, one takes some 30 ms.
	roundSpacing = 500 * time.Millisecond
	// idle is the time between two looks at an agenda without due checks.
	idle = time.Minute
	// ReadTimeout bounds one live read, claimTimeout the look at a plan.
	ReadTimeout  = 10 * time.Second
	claimTimeout = time.Second
	// CatchUp is the time that the watch gets to come to the reading of a check. Most of the
	// time the change is merely on its way, and the watch tells more of it.
	CatchUp      = 10 * time.Second
	catchUpAgain = 250 * time.Millisecond
)

// Guards tells which guards are in force; *guard.Controller does.
type Guards interface {
	Snapshot() *guards.Snapshot
}

// Defaults tells which GuardDefaults are in force; the controller of GuardDefaults does.
type Defaults interface {
	Active() *guarddefaults.Active
}

// Trigger makes objects be looked at; *baseline.Trigger does.
type Trigger interface {
	Look(kube.Key)
}

// Scheduler makes the scheduled checks, and the requested ones. It reads the
// object past the watch and hands its reading to the reconciliation.
type Scheduler struct {
	// Client reads plans, from the cache.
	Client client.Reader
	Agenda *Agenda
	// Watch has the objects of the watch, and takes the readings of checks.
	Watch *Ahead
	// Trigger has the reconciliation take the answer of a check.
	Trigger  Trigger
	Live     ObjectReader
	Guards   Guards
	Defaults Defaults
	Metrics  *Metrics
	// Threshold is the share of all objects that may be checked or repaired at once where
	// no GuardDefaults say one.
	Threshold resync.Percent
	// MaxConcurrent bounds the checks that go on at once.
	MaxConcurrent int
	Clock         clock.WithTicker
	Log           logr.Logger

	pace    *rate.Limiter
	running sync.WaitGroup
}

// Start runs until ctx ends; it is a manager.Runnable.
func (c *Scheduler) Start(ctx context.Context) error {
	c.pace = rate.NewLimiter(startsPerSecond, startsAtOnce)
	defer c.running.Wait()
	for ctx.Err() == nil {
		wait := c.round(ctx)
		if !c.pause(ctx, roundSpacing, nil) || !c.pause(ctx, wait-roundSpacing, c.Agenda.wake) {
			return nil
		}
	}
	return nil
}

// pause waits, at most until it is told to wake; false when ctx ended.
func (c *Scheduler) pause(ctx context.Context, wait time.Duration, wake <-chan struct{}) bool {
	if wait <= 0 {
		return ctx.Err() == nil
	}
	timer := c.Clock.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-wake:
	case <-timer.C():
	}
	return true
}

// round starts the checks that may start now, and says when to look again.
func (c *Scheduler) round(ctx context.Context) time.Duration {
	now, agenda := c.Clock.Now(), c.Agenda
	for _, key := range agenda.unanswered(now) {
		c.Metrics.countCheck(key, resultFailed)
		c.Log.Info("check.unanswered", "kind", key.Kind, "namespace", key.Namespace, "name", key.Name)
	}
	for _, key := range agenda.choose(now, c.held(ctx, agenda.claims()), limitsOf(c.Defaults.Active(), c.Threshold, c.MaxConcurrent)) {
		if !c.pace.AllowN(now, 1) {
			return roundSpacing
		}
		told, request, ok := agenda.begin(key)
		if ok {
			c.running.Go(func() { c.check(ctx, key, told, request) })
		}
	}
	next := agenda.next()
	if next.IsZero() {
		return idle
	}
	return min(max(next.Sub(now), roundSpacing), idle)
}

// limitsOf are the thresholds in force; fallback holds where no GuardDefaults say one.
func limitsOf(f *guarddefaults.Active, fallback resync.Percent, maxConcurrent int) limits {
	l := limits{maxConcurrent: maxConcurrent, environments: map[string]resync.Percent{}}
	l.installation = f.Threshold("", fallback)
	for _, name := range f.Environments() {
		l.environments[name] = f.Threshold(name, fallback)
	}
	return l
}

// held are the claimed objects whose plan goes on. A claim of an ended or deleted plan
// holds no object. A claim of an unreadable plan holds its object.
func (c *Scheduler) held(ctx context.Context, claims []claimed) map[kube.Key]bool {
	if len(claims) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	held := map[kube.Key]bool{}
	for _, claim := range claims {
		plan := &v1alpha1.RemediationPlan{}
		err := c.Client.Get(ctx, types.NamespacedName{Namespace: claim.key.Namespace, Name: claim.plan}, plan)
		over := apierrors.IsNotFound(err) || err == nil && protocol.Final(plan.Status.Phase)
		held[claim.key] = !over
	}
	return held
}

// check makes one check, whose reading the reconciliation tells.
func (c *Scheduler) check(ctx context.Context, key kube.Key, told Told, request string) {
	agenda, metrics := c.Agenda, c.Metrics
	reading, missed, err := c.look(ctx, key, told)
	if err != nil {
		agenda.failed(key, c.Clock.Now())
		if ctx.Err() == nil {
			metrics.countCheck(key, resultFailed)
			c.Log.Info("check.failed", "kind", key.Kind, "namespace", key.Namespace, "name", key.Name, "error", err.Error())
		}
		return
	}
	differs, ok := agenda.found(key, reading, request)
	if !ok {
		return // it is not guarded any more
	}
	switch {
	case missed:
		metrics.countCheck(key, resultMissed)
		c.Log.Info("check.missed", "kind", key.Kind, "namespace", key.Namespace, "name", key.Name, "version", reading.Version)
	case differs:
		metrics.countCheck(key, resultChanged)
	default:
		metrics.countCheck(key, resultUnchanged)
	}
	c.Trigger.Look(key)
}

// errUnwatched says that no reconciliation could judge the reading of a check.
var errUnwatched = errors.New("its kind cannot be watched")

// errNoRoom says that the watch has missed more than memory is spent on.
var errNoRoom = errors.New("too much waits for the watch to come to it")

// look reads an object. missed: the watch did not come to the reading, which the
// reconciliation then gets beside the objects of the watch.
func (c *Scheduler) look(ctx context.Context, key kube.Key, told Told) (reading Reading, missed bool, err error) {
	deadline := c.Clock.Now().Add(CatchUp)
	if reading, err = c.read(ctx, key); err != nil {
		return Reading{}, false, err
	}
	watch := c.Watch
	for {
		view := watch.View(key)
		switch {
		case view.Unknown != nil:
			return Reading{}, false, fmt.Errorf("checking %s: %w: %w", key, errUnwatched, view.Unknown)
		case told.is(reading) && len(view.Pending) == 0, reached(view, reading):
			return reading, false, nil
		case passed(view, reading), watch.behind(key.GroupVersionKind, view.Progress), !c.Clock.Now().Before(deadline):
			// Once more: it may have changed again while the watch was waited for.
			if reading, err = c.read(ctx, key); err != nil || reached(view, reading) {
				return reading, false, err
			}
			if !watch.Hold(key, reading, view.Current) {
				return Reading{}, false, fmt.Errorf("checking %s: %w", key, errNoRoom)
			}
			return reading, true, nil
		}
		if !c.pause(ctx, catchUpAgain, nil) {
			return Reading{}, false, ctx.Err()
		}
	}
}

func (c *Scheduler) read(ctx context.Context, key kube.Key) (Reading, error) {
	snapshot := c.Guards.Snapshot()
	if snapshot == nil {
		return Reading{}, fmt.Errorf("checking %s: the guards are not known", key)
	}
	resource, served := snapshot.Resources[key.GroupVersionKind]
	if !served {
		return Reading{}, fmt.Errorf("checking %s: no active guard names its kind", key)
	}
	ctx, cancel := context.WithTimeout(ctx, ReadTimeout)
	defer cancel()
	return c.Live.Read(ctx, resource, key)
}
