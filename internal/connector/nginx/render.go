// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
)

// The names of the files and of the sockets in the folder.
const (
	MainFile    = "main.conf"
	ConfigFile  = "plumbline.conf"
	RequestFile = "request.conf"
	ProbeSocket = "probe.sock"
)

// Options of an installation.
type Options struct {
	// Folder holds the files. It is absolute, of letters, digits and ._/- alone, and has at most 80
	// characters, because the path of a socket has at most 107.
	Folder string
	// LogAddress gets a line for each request: a port of an IPv4 loopback address, such as 127.0.0.1:15514.
	LogAddress netip.AddrPort
	// KeepaliveMin is how long a worker of before a reload keeps an idle connection of a client. 0
	// leaves it out, as nginx older than 1.27.4 needs; each reload then loses requests.
	KeepaliveMin time.Duration
	// Shutdown bounds the life of a worker of before a reload; 0 is no bound.
	Shutdown time.Duration
}

var plainFolder = regexp.MustCompile(`^/[0-9A-Za-z._/-]{0,79}$`)

// Files are what the user's configuration includes.
type Files struct {
	Main, Config, Request []byte
	// Generation is a digest of all files. The probe answers with it.
	Generation string
	// Rules is a digest of all but the endpoints.
	Rules string
}

// Render writes the files of ports. A port that nginx cannot carry out is an error: see [Check].
func Render(o Options, ports []envoyxds.Port) (Files, error) {
	if !plainFolder.MatchString(o.Folder) {
		return Files{}, fmt.Errorf("rendering nginx's configuration: folder %q is not absolute, has another character than letters, digits and ._/-, or more than 80", o.Folder)
	}
	if !o.LogAddress.Addr().Is4() || !o.LogAddress.Addr().IsLoopback() || o.LogAddress.Port() == 0 {
		return Files{}, fmt.Errorf("rendering nginx's configuration: the address of the log %s is no port of an IPv4 loopback address", o.LogAddress)
	}
	w := &writer{options: o}
	single := portsOfServices(ports)
	var errs []error
	for _, p := range ports {
		if err := Check(p); err != nil {
			errs = append(errs, fmt.Errorf("rendering port %d of Service %s/%s for nginx: %w", p.Number, p.Namespace, p.Service, err))
			continue
		}
		w.port(p, single[serviceVariable(p)] == 1)
	}
	if err := errors.Join(errs...); err != nil {
		return Files{}, err
	}
	w.cookies(ports)
	return w.files(), nil
}

func portsOfServices(ports []envoyxds.Port) map[string]int {
	count := map[string]int{}
	for _, p := range ports {
		count[serviceVariable(p)]++
	}
	return count
}

// writer collects lines.
type writer struct {
	options       Options
	config, rules bytes.Buffer
}

// line is of the rules.
func (w *writer) line(format string, args ...any) {
	text := fmt.Sprintf(format, args...) + "\n"
	w.config.WriteString(text)
	w.rules.WriteString(text)
}

// endpoint is a line that changes with the endpoints alone.
func (w *writer) endpoint(format string, args ...any) {
	fmt.Fprintf(&w.config, format+"\n", args...)
}

func (w *writer) file(name string) string { return path.Join(w.options.Folder, name) }

// files closes the configuration with its generation, which workers answer at the probe.
func (w *writer) files() Files {
	f := Files{Main: w.main(), Request: w.request()}
	rules, all := sha256.New(), sha256.New()
	for _, common := range [][]byte{f.Main, f.Request} {
		rules.Write(common)
		all.Write(common)
	}
	rules.Write(w.rules.Bytes())
	all.Write(w.config.Bytes())
	const bytesOfDigest = 16
	f.Rules = hex.EncodeToString(rules.Sum(nil)[:bytesOfDigest])
	f.Generation = hex.EncodeToString(all.Sum(nil)[:bytesOfDigest])
	f.Config = append(w.head(f.Generation), w.config.Bytes()...)
	return f
}

func (w *writer) main() []byte {
	text := "# Plumbline writes this file. Include it outside of all blocks.\n"
	if w.options.Shutdown > 0 {
		text += fmt.Sprintf("worker_shutdown_timeout %dms;\n", w.options.Shutdown.Milliseconds())
	}
	return []byte(text)
}

// request has the directives that a block with directives of their kind does not inherit.
func (w *writer) request() []byte {
	return fmt.Appendf(nil, `# Plumbline writes this file. Include it where access_log or add_header is used.
access_log syslog:server=%s,nohostname,tag=plb plb if=$plb_ours;
add_header Set-Cookie $plb_setcookie;
`, w.options.LogAddress)
}

// head has what is there once. $proxy_host is the upstream that a request was sent to.
func (w *writer) head(generation string) []byte {
	text := "# Plumbline writes this file. Include it in the http block.\n"
	if w.options.KeepaliveMin > 0 {
		text += fmt.Sprintf("keepalive_min_timeout %dms;\n", w.options.KeepaliveMin.Milliseconds())
	}
	return fmt.Appendf([]byte(text), `variables_hash_bucket_size 512;
map $proxy_host $plb_ours {
  default 0;
  "~^plb_" 1;
}
log_format plb '$proxy_host $status $msec $request_time $upstream_addr';
include %s;
server {
  listen unix:%s;
  keepalive_timeout 0;
  access_log off;
  location / {
    return 200 "%s";
  }
}
`, w.file(RequestFile), w.file(ProbeSocket), generation)
}
