// SPDX-License-Identifier: Apache-2.0

package selftest

import (
	"flag"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Role is the self-test's name in --role. It runs alone: its identity may do
// nothing but write its own object.
const Role = "selftest"

// maxPeriod keeps "last found" meaningful.
const maxPeriod = 24 * time.Hour

// Options are the self-test's flags.
type Options struct {
	// Namespace and Name of the object that is drifted.
	Namespace, Name string
	// Period between two rounds.
	Period time.Duration
	// Deadline by which a drift has to be found.
	Deadline time.Duration
}

// AddFlags registers the flags with their defaults.
func (o *Options) AddFlags(fs *flag.FlagSet) {
	fs.StringVar(&o.Namespace, "selftest-namespace", "plumbline-system-selftest", "namespace of the self-test's Deployment")
	fs.StringVar(&o.Name, "selftest-name", "plumbline-selftest-object", "name of the self-test's Deployment")
	fs.DurationVar(&o.Period, "selftest-period", 5*time.Minute, "time between two rounds of the self-test")
	fs.DurationVar(&o.Deadline, "selftest-deadline", time.Minute, "how long the self-test waits to be found")
}

// Validate lists what cannot work, each with the flag as its path.
func (o *Options) Validate() field.ErrorList {
	var errs field.ErrorList
	for _, msg := range validation.IsDNS1123Label(o.Namespace) {
		errs = append(errs, field.Invalid(field.NewPath("--selftest-namespace"), o.Namespace, msg))
	}
	for _, msg := range validation.IsDNS1123Subdomain(o.Name) {
		errs = append(errs, field.Invalid(field.NewPath("--selftest-name"), o.Name, msg))
	}
	if o.Period < MinPeriod || o.Period > maxPeriod {
		errs = append(errs, field.Invalid(field.NewPath("--selftest-period"), o.Period.String(), "must be from "+MinPeriod.String()+" to "+maxPeriod.String()))
	}
	if o.Deadline < time.Second || o.Deadline > o.Period/2 {
		errs = append(errs, field.Invalid(field.NewPath("--selftest-deadline"), o.Deadline.String(), "must be from 1s to half of --selftest-period"))
	}
	return errs
}
