// SPDX-License-Identifier: Apache-2.0

package options

import (
	"flag"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/plumbline-dev/plumbline/internal/source"
)

// Source says where a server of the installation is, such as Prometheus.
type Source struct {
	source.Config
	// flag is the part of its flags before the first dash, and name that of the program.
	flag, name string
}

// AddFlags registers the flags of a named program, such as prometheus and Prometheus. The purpose ends the
// sentence that says what the program is asked for.
func (s *Source) AddFlags(fs *flag.FlagSet, prefix, name, purpose string) {
	s.flag, s.name = prefix, name
	fs.StringVar(&s.URL, prefix+"-url", "", "address of the "+name+" that "+purpose)
	fs.StringVar(&s.CAFile, prefix+"-ca-file", "", "file of the authorities that "+name+" is known by; read at every query; empty means those of the system")
	fs.StringVar(&s.TokenFile, prefix+"-token-file", "", "file with the token that "+name+" is shown; read at every query; empty for no token")
}

// Validate lists what cannot work, each with the flag as its path.
func (s *Source) Validate() field.ErrorList {
	urlFlag, caFlag, tokenFlag := s.flag+"-url", s.flag+"-ca-file", s.flag+"-token-file"
	errs := append(validateFile(caFlag, s.CAFile), validateFile(tokenFlag, s.TokenFile)...)
	if s.URL == "" {
		for name, value := range map[string]string{caFlag: s.CAFile, tokenFlag: s.TokenFile} {
			if value != "" {
				errs = append(errs, field.Invalid(flagPath(name), value, "is of no use without --"+urlFlag))
			}
		}
		return errs
	}
	target, err := source.ParseURL(s.name, s.URL)
	switch {
	case err != nil: // the value can hold a password
		errs = append(errs, field.Invalid(flagPath(urlFlag), field.OmitValueType{}, err.Error()))
	case target.Scheme != "https" && s.TokenFile != "":
		errs = append(errs, field.Invalid(flagPath(tokenFlag), s.TokenFile, "a token needs https:// in --"+urlFlag))
	case target.Scheme != "https" && s.CAFile != "":
		errs = append(errs, field.Invalid(flagPath(caFlag), s.CAFile, "is of no use without https:// in --"+urlFlag))
	}
	return errs
}
