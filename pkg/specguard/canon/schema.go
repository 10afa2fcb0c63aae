// SPDX-License-Identifier: Apache-2.0

package canon

// typeID is an index in schemaTypes; 0 is the type of which nothing is known
// that matters here: lists below it keep their order.
type typeID uint16

// schemaType is one map or list type of the Kubernetes schema, as far as it
// leads to a list that is not atomic.
type schemaType struct {
	// fields and values apply to maps: the type of named members, and of all
	// others.
	fields []schemaField
	values typeID
	// mode, keys, element and references apply to lists.
	mode    ListMode
	keys    []string
	element typeID
	// references marks env lists: they keep their order when a value refers to
	// another variable.
	references bool
}

type schemaField struct {
	name string
	typ  typeID
}

// maxListKeys is the most merge keys that any list type has; the generator
// checks it.
const maxListKeys = 4

// memberType is the schema of a map's member.
func memberType(typ typeID, key []byte) typeID {
	if typ == 0 {
		return 0
	}
	t := &schemaTypes[typ]
	for i := range t.fields {
		if string(key) == t.fields[i].name {
			return t.fields[i].typ
		}
	}
	return t.values
}
