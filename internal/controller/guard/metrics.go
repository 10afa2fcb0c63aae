// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// EnforcementMetrics are the figures of Enforcement. A nil one counts nothing.
type EnforcementMetrics struct {
	enforced *prometheus.GaugeVec
}

// NewEnforcementMetrics registers plumbline_guard_enforced: 1 while the API server
// proves that a guard that denies is in force, 0 when it does not or when that is
// not known. Guards that do not deny, and suspended ones, have no series.
func NewEnforcementMetrics(registry prometheus.Registerer) (*EnforcementMetrics, error) {
	m := &EnforcementMetrics{enforced: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "plumbline_guard_enforced",
		Help: "Whether the API server proved that it enforces a ClusterSpecGuard of mode Deny; 0 when it did not or is not known to have.",
	}, []string{"guard"})}
	if err := registry.Register(m.enforced); err != nil {
		return nil, fmt.Errorf("registering the figures of enforcement: %w", err)
	}
	return m, nil
}

func (m *EnforcementMetrics) set(guard string, enforced bool) {
	if m == nil {
		return
	}
	value := 0.0
	if enforced {
		value = 1
	}
	m.enforced.WithLabelValues(guard).Set(value)
}

func (m *EnforcementMetrics) remove(guard string) {
	if m != nil {
		m.enforced.DeleteLabelValues(guard)
	}
}

// MassDriftMetrics are the figures of mass drift. A nil one counts nothing.
type MassDriftMetrics struct {
	frozen *prometheus.GaugeVec
}

// NewMassDriftMetrics registers plumbline_mass_drift_frozen. Its labels name neither
// guards nor namespaces, because tenants make both.
func NewMassDriftMetrics(registry prometheus.Registerer) (*MassDriftMetrics, error) {
	m := &MassDriftMetrics{frozen: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "plumbline_mass_drift_frozen",
		Help: "Frozen scopes of mass drift over all guards: Namespace, Cause (in several namespaces), Everything (that a guard selects).",
	}, []string{"scope"})}
	if err := registry.Register(m.frozen); err != nil {
		return nil, fmt.Errorf("registering the figures of mass drift: %w", err)
	}
	return m, nil
}

// frozenScopes counts the frozen scopes of all guards.
type frozenScopes struct{ namespaces, causes, everything int }

func (f *frozenScopes) add(m *v1alpha1.MassDrift) {
	if m == nil {
		return
	}
	f.namespaces += len(m.Namespaces)
	f.causes += len(m.Causes)
	if m.EverythingStartTime != nil {
		f.everything++
	}
}

func (m *MassDriftMetrics) set(f frozenScopes) {
	if m == nil {
		return
	}
	m.frozen.WithLabelValues("Namespace").Set(float64(f.namespaces))
	m.frozen.WithLabelValues("Cause").Set(float64(f.causes))
	m.frozen.WithLabelValues("Everything").Set(float64(f.everything))
}

// ExceptionMetrics are the figures of SpecGuardExceptions. A nil one counts nothing.
type ExceptionMetrics struct {
	exceptions *prometheus.GaugeVec
}

// NewExceptionMetrics registers plumbline_exceptions. Its label names neither exceptions nor
// namespaces, because tenants make both.
func NewExceptionMetrics(registry prometheus.Registerer) (*ExceptionMetrics, error) {
	m := &ExceptionMetrics{exceptions: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "plumbline_exceptions",
		Help: "SpecGuardExceptions by state: Active, Ended, Invalid.",
	}, []string{"state"})}
	if err := registry.Register(m.exceptions); err != nil {
		return nil, fmt.Errorf("registering the figures of exceptions: %w", err)
	}
	return m, nil
}

func (m *ExceptionMetrics) set(count map[string]int) {
	if m == nil {
		return
	}
	for _, state := range []string{exceptionActive, exceptionEnded, exceptionInvalid} {
		m.exceptions.WithLabelValues(state).Set(float64(count[state]))
	}
}
