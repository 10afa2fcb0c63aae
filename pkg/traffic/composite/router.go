// SPDX-License-Identifier: Apache-2.0

package composite

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// Part is one router of several.
type Part struct {
	// Name tells the parts of one composite apart. It has no slash.
	Name   string
	Router traffic.Router
}

// Router is a traffic.Router of one part or more.
type Router struct{ parts []Part }

var _ traffic.Router = (*Router)(nil)

// New returns the router of all parts.
func New(first Part, others ...Part) *Router { return &Router{append([]Part{first}, others...)} }

// Capabilities implements traffic.Router: those that each part has. Visitors of a composite that is sticky keep their
// variation at each part; whether two parts give a visitor the same one depends on their programs.
func (r *Router) Capabilities() traffic.Capabilities {
	can := r.parts[0].Router.Capabilities()
	for _, part := range r.parts[1:] {
		can = can.Both(part.Router.Capabilities())
	}
	return can
}

// Validate implements traffic.Router: the reasons of all parts.
func (r *Router) Validate(split traffic.Split) error {
	return r.join(func(part traffic.Router) error { return part.Validate(split) })
}

// Apply implements traffic.Router. A split that one part refuses is applied at none. An error of one part does not
// keep the others from the split, and applying the split again reaches that part.
func (r *Router) Apply(ctx context.Context, split traffic.Split) error {
	if err := r.Validate(split); err != nil {
		return fmt.Errorf("applying sequence %d: %w", split.Sequence, err)
	}
	return r.join(func(part traffic.Router) error { return part.Apply(ctx, split) })
}

// Remove implements traffic.Router. An error of one part does not keep the others from the removal.
func (r *Router) Remove(ctx context.Context) error {
	return r.join(func(part traffic.Router) error { return part.Remove(ctx) })
}

// Observe implements traffic.Router.
func (r *Router) Observe(ctx context.Context) (traffic.Observation, error) {
	return observe(ask(r.parts, func(part Part) (traffic.Observation, error) { return part.Router.Observe(ctx) }))
}

// Measure implements traffic.Router.
func (r *Router) Measure(ctx context.Context, since traffic.Cursor) (traffic.Measurement, error) {
	answers := ask(r.parts, func(part Part) (traffic.Measurement, error) {
		return part.Router.Measure(ctx, cursorOf(part.Name, since))
	})
	return measure(answers, since)
}

// answer of one part.
type answer[T any] struct {
	part string
	said T
	err  error
}

// ask all parts at once, so that one that hangs takes no time of the others.
func ask[T any](parts []Part, question func(Part) (T, error)) []answer[T] {
	answers := make([]answer[T], len(parts))
	var all sync.WaitGroup
	for i, part := range parts {
		all.Go(func() {
			said, err := question(part)
			answers[i] = answer[T]{part.Name, said, err}
		})
	}
	all.Wait()
	return answers
}

// join asks all parts, and returns their errors. Of several that have a later sequence the error names the latest
// once, before the others.
func (r *Router) join(do func(traffic.Router) error) error {
	answers := ask(r.parts, func(part Part) (struct{}, error) { return struct{}{}, do(part.Router) })
	var latest *traffic.LaterError
	for _, a := range answers {
		var later *traffic.LaterError
		if errors.As(a.err, &later) && (latest == nil || later.Sequence > latest.Sequence) {
			latest = later
		}
	}
	errs := failures(answers)
	if latest != nil {
		errs = append([]error{latest}, errs...)
	}
	return errors.Join(errs...)
}

// failures are the errors of all parts, each with the name of its part.
func failures[T any](answers []answer[T]) (errs []error) {
	for _, a := range answers {
		if a.err != nil {
			errs = append(errs, fmt.Errorf("router %s: %w", a.part, a.err))
		}
	}
	return errs
}

// unheard returns the parts that answered with an error, and their errors joined if all did.
func unheard[T any](answers []answer[T]) ([]string, error) {
	var parts []string
	for _, a := range answers {
		if a.err != nil {
			parts = append(parts, a.part)
		}
	}
	if len(parts) == len(answers) {
		return nil, errors.Join(failures(answers)...)
	}
	return parts, nil
}
