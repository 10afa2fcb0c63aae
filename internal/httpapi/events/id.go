// SPDX-License-Identifier: Apache-2.0

package events

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
)

// ID names an event among all of the cluster.
type ID struct {
	// Second is when the event happened, in seconds since 1970.
	Second int64
	// UID is that of the object.
	UID string
	// Place tells the event from the others of the object.
	Place string
}

// maxID bounds the text of an id, in bytes.
const maxID = 256

// ErrNoID says that a text is the id of no event.
var ErrNoID = errors.New("it is the id of no event")

var idForm = regexp.MustCompile(`^([0-9]{1,12})\.([0-9A-Za-z-]{1,128})\.([0-9a-z_]{1,63})$`)

// String writes the id. [ParseID] reads it.
func (id ID) String() string { return fmt.Sprintf("%d.%s.%s", id.Second, id.UID, id.Place) }

// ParseID reads the text of an id.
func ParseID(text string) (ID, error) {
	if len(text) > maxID {
		return ID{}, ErrNoID
	}
	parts := idForm.FindStringSubmatch(text)
	if parts == nil {
		return ID{}, ErrNoID
	}
	second, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil || strconv.FormatInt(second, 10) != parts[1] {
		return ID{}, ErrNoID
	}
	return ID{second, parts[2], parts[3]}, nil
}
