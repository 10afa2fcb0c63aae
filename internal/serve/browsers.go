// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"crypto/x509"
	"flag"
	"fmt"
	"net/url"
	"os"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/internal/options"
	"github.com/plumbline-dev/plumbline/internal/serve/oidc"
	"github.com/plumbline-dev/plumbline/internal/serve/session"
)

// BrowserOptions are the flags of the role that are about browsers.
type BrowserOptions struct {
	// SessionKeysFile has the keys of sessions, one a line; empty where no browser is served.
	SessionKeysFile string
	// OIDCIssuer is the URL of the issuer of OpenID Connect; empty if there is none. The other values are about it.
	OIDCIssuer, OIDCClientID, OIDCClientSecretFile, OIDCScopes, OIDCCAFile string
}

func (o *BrowserOptions) addFlags(fs *flag.FlagSet) {
	fs.StringVar(&o.SessionKeysFile, "api-session-keys-file", "", "role serve: file with the keys of sessions, each 32 bytes in base64 on a line of its own; the first one seals; empty: no console")
	fs.StringVar(&o.OIDCIssuer, "api-oidc-issuer", "", "role serve: URL of the OpenID Connect issuer at which users of browsers log in; the API server must trust it")
	fs.StringVar(&o.OIDCClientID, "api-oidc-client-id", "", "role serve: client at the issuer; the API server must take it as an audience")
	fs.StringVar(&o.OIDCClientSecretFile, "api-oidc-client-secret-file", "", "role serve: file with the secret of the client; empty for a public client")
	fs.StringVar(&o.OIDCScopes, "api-oidc-scopes", "profile,email,groups,offline_access", "role serve: scopes to ask the issuer for beside openid, comma separated")
	fs.StringVar(&o.OIDCCAFile, "api-oidc-ca-file", "", "role serve: file with the authorities of the issuer's certificate; empty for those of the system")
}

func (o *BrowserOptions) validate() (errs field.ErrorList) {
	if o.OIDCIssuer == "" {
		for name, value := range map[string]string{
			"api-oidc-client-id": o.OIDCClientID, "api-oidc-client-secret-file": o.OIDCClientSecretFile, "api-oidc-ca-file": o.OIDCCAFile,
		} {
			if value != "" {
				errs = append(errs, field.Invalid(field.NewPath("--"+name), value, "needs --api-oidc-issuer"))
			}
		}
		return errs
	}
	issuer, err := url.Parse(o.OIDCIssuer)
	if err != nil || issuer.Scheme != "https" || issuer.Host == "" || issuer.User != nil || issuer.RawQuery != "" || issuer.Fragment != "" {
		errs = append(errs, field.Invalid(field.NewPath("--api-oidc-issuer"), o.OIDCIssuer, "must be a URL with https, without query and fragment"))
	}
	if o.OIDCClientID == "" {
		errs = append(errs, field.Required(field.NewPath("--api-oidc-client-id"), "the issuer knows clients by it"))
	}
	if o.SessionKeysFile == "" {
		errs = append(errs, field.Required(field.NewPath("--api-session-keys-file"), "a login needs a session"))
	}
	return errs
}

// Sessions reads the files about browsers. It returns nil where no browser is served.
func (o *BrowserOptions) Sessions(passive clock.PassiveClock) (*Sessions, error) {
	if o.SessionKeysFile == "" {
		return nil, nil //nolint:nilnil // none is served
	}
	file, err := openKeyFile(o.SessionKeysFile)
	if err != nil {
		return nil, err
	}
	s := &Sessions{Keys: file.keys, file: file}
	if o.OIDCIssuer == "" {
		return s, nil
	}
	c := oidc.Config{Issuer: o.OIDCIssuer, ClientID: o.OIDCClientID, Scopes: options.SplitList(o.OIDCScopes), Clock: passive}
	if o.OIDCClientSecretFile != "" {
		secret, err := os.ReadFile(o.OIDCClientSecretFile)
		if err != nil {
			return nil, fmt.Errorf("reading the secret of the client: %w", err)
		}
		c.ClientSecret = string(bytes.TrimSpace(secret))
	}
	if o.OIDCCAFile != "" {
		roots, err := os.ReadFile(o.OIDCCAFile)
		if err != nil {
			return nil, fmt.Errorf("reading the authorities of the issuer: %w", err)
		}
		if c.Roots = x509.NewCertPool(); !c.Roots.AppendCertsFromPEM(roots) {
			return nil, fmt.Errorf("reading the authorities of the issuer: %s has no certificate", o.OIDCCAFile)
		}
	}
	s.Issuer = oidc.New(c)
	return s, nil
}

// Sessions has the parts by which browsers are served.
type Sessions struct {
	Keys *session.Keys
	// Issuer is that of OpenID Connect; nil if there is none.
	Issuer *oidc.Provider
	// file has the keys; nil for keys that do not change.
	file *keyFile
}
