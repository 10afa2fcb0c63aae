// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/plumbline-dev/plumbline/internal/options"
	"github.com/plumbline-dev/plumbline/pkg/specguard/admit"
)

// settings are the webhook's options, and those that package admit bounds.
type settings struct {
	options.Webhook
	// MaxHandshakes is how many TLS handshakes are computed at once; 0 means
	// half of the processors.
	MaxHandshakes int
}

// AddFlags registers the flags with their defaults.
func (s *settings) AddFlags(fs *flag.FlagSet) {
	s.Webhook.AddFlags(fs)
	fs.IntVar(&s.MaxHandshakes, "max-handshakes", 0, fmt.Sprintf("TLS handshakes computed at once; 0: half of the processors, %d: no limit", admit.MaxHandshakes))
}

// Validate lists what cannot work, each with the flag as its path.
func (s *settings) Validate() field.ErrorList {
	errs := s.Webhook.Validate()
	if s.MaxHandshakes < 0 || s.MaxHandshakes > admit.MaxHandshakes {
		errs = append(errs, field.Invalid(field.NewPath("--max-handshakes"), s.MaxHandshakes, fmt.Sprintf("must be from 0 to %d", admit.MaxHandshakes)))
	}
	return errs
}
