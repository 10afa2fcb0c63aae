// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// partSize is how much of a value one cookie has: browsers keep 4096 bytes, with name and attributes.
	partSize = 3800
	// maxParts bounds the cookies of one value, so that they fit into the headers that the server reads.
	maxParts = 3
)

// ErrTooLarge says that a value does not fit into cookies.
var ErrTooLarge = errors.New("the session does not fit into cookies")

// Write sets the cookies of a value that ends. Cookies of a longer value before are removed.
func Write[V any](w http.ResponseWriter, k *Keys, purpose Purpose, end time.Time, value V) error {
	sealed, err := seal(k, purpose, end, value)
	if err != nil {
		return err
	}
	parts := (len(sealed) + partSize - 1) / partSize
	if parts > maxParts {
		return ErrTooLarge
	}
	for i := range maxParts {
		if i >= parts {
			setCookie(w, nameOf(purpose, i), "", -1)
			continue
		}
		part := sealed[i*partSize : min(len(sealed), (i+1)*partSize)]
		if i == 0 {
			part = strconv.Itoa(parts) + "." + part
		}
		setCookie(w, nameOf(purpose, i), part, 0)
	}
	return nil
}

// Clear removes the cookies of a purpose.
func Clear(w http.ResponseWriter, purpose Purpose) {
	for i := range maxParts {
		setCookie(w, nameOf(purpose, i), "", -1)
	}
}

// setCookie sets a cookie that no script reads and no form of another site sends. A link of another site does
// send it: the issuer leads back by one.
func setCookie(w http.ResponseWriter, name, value string, maxAge int) {
	http.SetCookie(w, &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, Secure: true, SameSite: http.SameSiteLaxMode})
}

// nameOf names a cookie. Browsers take the prefix from the host itself alone: no other host of its domain sets it.
func nameOf(purpose Purpose, part int) string {
	name := "__Host-plumbline-" + string(purpose)
	if part > 0 {
		name += "-" + strconv.Itoa(part)
	}
	return name
}

// Read returns the value that a browser has, and whether it has one.
func Read[V any](r *http.Request, k *Keys, purpose Purpose, now time.Time) (V, bool) {
	value, err := unseal[V](k, purpose, now, joined(r, purpose))
	return value, err == nil
}

// joined joins the parts of a value; empty if one is missing or comes twice.
func joined(r *http.Request, purpose Purpose) string {
	first := cookieOf(r, purpose, 0)
	count, sealed, _ := strings.Cut(first, ".")
	parts, err := strconv.Atoi(count)
	if err != nil || parts < 1 || parts > maxParts {
		return ""
	}
	all := []string{sealed}
	for i := 1; i < parts; i++ {
		part := cookieOf(r, purpose, i)
		if part == "" {
			return ""
		}
		all = append(all, part)
	}
	if sealed = strings.Join(all, ""); len(sealed) > maxParts*partSize {
		return ""
	}
	return sealed
}

func cookieOf(r *http.Request, purpose Purpose, part int) string {
	found := r.CookiesNamed(nameOf(purpose, part))
	if len(found) != 1 {
		return ""
	}
	return found[0].Value
}
