// SPDX-License-Identifier: Apache-2.0

package options

import (
	"flag"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/plumbline-dev/plumbline/internal/source/prometheus"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// Gates say which gates rollouts can have, and how large their clones are.
type Gates struct {
	Egress
	// Prometheus is where queries are asked; without an address rollouts have no queries.
	Prometheus Source
	// InlineQueries permits queries in the strategy of a release.
	InlineQueries bool
	// HeadroomPercent is what a clone has beyond its part of the pods.
	HeadroomPercent int
	// Secrets are those that webhooks may name, comma separated; empty: rollouts have no webhooks.
	Secrets string
}

// AddFlags registers the flags with their defaults.
func (g *Gates) AddFlags(fs *flag.FlagSet) {
	g.Egress.AddFlags(fs)
	g.Prometheus.AddFlags(fs, "prometheus", prometheus.Name, "queries of rollouts are asked of; empty: rollouts have no queries")
	fs.BoolVar(&g.InlineQueries, "inline-queries", false, "permit queries in the strategy of a release; each writer of releases can then read the metrics of Prometheus")
	fs.IntVar(&g.HeadroomPercent, "headroom-percent", rollout.DefaultHeadroomPercent, "percent that a clone has beyond its part of the pods of the variation that it is made from, 0 to 200")
	fs.StringVar(&g.Secrets, "gate-secrets", "", "Secrets in --namespace that webhooks of rollouts may name, comma separated; empty: rollouts have no webhooks")
}

func (g *Gates) validate() field.ErrorList {
	errs := g.Validate()
	if g.HeadroomPercent < 0 || g.HeadroomPercent > rollout.MaxHeadroomPercent {
		errs = append(errs, field.Invalid(flagPath("headroom-percent"), g.HeadroomPercent, fmt.Sprintf("must be 0 to %d", rollout.MaxHeadroomPercent)))
	}
	errs = append(errs, g.Prometheus.Validate()...)
	return append(errs, validateSecrets("gate-secrets", g.Secrets)...)
}

// validateSecrets demands names of Secrets in the list of a flag.
func validateSecrets(name, list string) (errs field.ErrorList) {
	for _, secret := range SplitList(list) {
		for _, msg := range validation.IsDNS1123Subdomain(secret) {
			errs = append(errs, field.Invalid(flagPath(name), secret, msg))
		}
	}
	return errs
}
