package provider

import "fmt"

// MaxDepth is how many arrays and objects of a request body may be nested,
// the outermost object included. Tool schemas of real requests stay below
// 50 levels; common parsers give up between 512 and 10,000.
const MaxDepth = 512

// SyntaxError is a request that cannot be read in exactly one way. Message
// says what is wrong and is safe to show to the client; the status is 400.
type SyntaxError struct {
	Message string
}

// Error returns the message.
func (e *SyntaxError) Error() string { return e.Message }

func syntaxf(format string, args ...any) error {
	return &SyntaxError{Message: fmt.Sprintf(format, args...)}
}

// jsonErrorf is a syntaxf for a body that breaks the JSON grammar.
func jsonErrorf(format string, args ...any) error {
	return syntaxf("request body is not valid JSON: "+format, args...)
}

// lexer checks the JSON grammar of text and reports where values end. Every
// method takes and returns offsets in text.
type lexer struct {
	text []byte
	// high gathers bytes seen inside strings; its top bits tell whether
	// UTF-8 has to be checked at all.
	high uint64
	// escaped is set by each backslash; a caller that wants to know clears
	// it first.
	escaped bool
	// watch has every member's name looked at: marked says that one may be
	// that of a reference to a stored object, identified that one may be id.
	watch, marked, identified bool
	// objects has bit d set when the container at depth d is an object.
	objects [MaxDepth / 64]uint64
}

// space is the first offset from i on that holds no JSON white space.
func (l *lexer) space(i int) int {
	for i < len(l.text) {
		switch l.text[i] {
		case ' ', '\n', '\r', '\t':
			i++
		default:
			return i
		}
	}
	return i
}

// unexpected describes what stands at i instead of what the grammar wants.
func (l *lexer) unexpected(i int, want string) error {
	if i >= len(l.text) {
		return jsonErrorf("it ends where %s was expected", want)
	}
	return jsonErrorf("found %q where %s was expected at byte %d", l.text[i:i+1], want, i)
}

// value checks the value that starts at i, white space before it skipped,
// inside depth open containers. It returns where the value starts and ends.
func (l *lexer) value(i, depth int) (start, end int, err error) {
	i = l.space(i)
	start = i
	base := depth
	for {
		i = l.space(i)
		if i >= len(l.text) {
			return 0, 0, l.unexpected(i, "a value")
		}
		c := l.text[i]
		if c == '{' || c == '[' {
			if depth++; depth > MaxDepth {
				return 0, 0, jsonErrorf("it is nested deeper than %d levels at byte %d", MaxDepth, i)
			}
			next, empty, err := l.open(i, depth)
			if err != nil {
				return 0, 0, err
			}
			if i = next; !empty {
				continue
			}
		} else if i, err = l.scalar(i); err != nil {
			return 0, 0, err
		}
		i, depth, err = l.closeAll(i, depth, base)
		if err != nil {
			return 0, 0, err
		}
		if depth == base {
			return start, i, nil
		}
	}
}

// open enters the container at i as the one at depth. It returns the offset
// of its closing byte when it is empty, else of its first value.
func (l *lexer) open(i, depth int) (next int, empty bool, err error) {
	word, bit := (depth-1)/64, uint64(1)<<((depth-1)%64)
	object := l.text[i] == '{'
	i = l.space(i + 1)
	if !object {
		l.objects[word] &^= bit
		return i, i < len(l.text) && l.text[i] == ']', nil
	}
	l.objects[word] |= bit
	if i < len(l.text) && l.text[i] == '}' {
		return i, true, nil
	}
	i, err = l.key(i)
	return i, false, err
}

// closeAll goes on after a value that ends at i: it leaves every container
// that closes there, down to depth base, and stops at the next value.
func (l *lexer) closeAll(i, depth, base int) (next, newDepth int, err error) {
	for depth > base {
		i = l.space(i)
		object := l.objects[(depth-1)/64]>>((depth-1)%64)&1 == 1
		if i < len(l.text) && l.text[i] == ',' {
			if object {
				i, err = l.key(l.space(i + 1))
				return i, depth, err
			}
			return i + 1, depth, nil
		}
		want, text := byte(']'), ", or ]"
		if object {
			want, text = '}', ", or }"
		}
		if i >= len(l.text) || l.text[i] != want {
			return 0, 0, l.unexpected(i, text)
		}
		i++
		depth--
	}
	return i, depth, nil
}

// key checks a member name at i and the colon after it, and returns the
// offset of the member's value.
func (l *lexer) key(i int) (int, error) {
	if i >= len(l.text) || l.text[i] != '"' {
		return 0, l.unexpected(i, "a member name in double quotes")
	}
	l.escaped = false
	after, err := l.str(i + 1)
	if err != nil {
		return 0, err
	}
	if l.watch {
		l.note(i+1, after-1)
	}
	return l.colon(after)
}

// note takes in the name of a member, which stands between start and end. One
// with escapes may be any.
func (l *lexer) note(start, end int) {
	switch m := markOf(l.text[start:end]); {
	case l.escaped:
		l.marked, l.identified = true, true
	case m == isIdentity:
		l.identified = true
	case m != noMark:
		l.marked = true
	}
}

// colon checks the colon after a member name that ends at i, and returns
// the offset of the value.
func (l *lexer) colon(i int) (int, error) {
	if i < len(l.text) && l.text[i] != ':' {
		i = l.space(i)
	}
	if i >= len(l.text) || l.text[i] != ':' {
		return 0, l.unexpected(i, "a colon")
	}
	return l.space(i + 1), nil
}

// scalar checks the string, number or literal at i and returns its end.
func (l *lexer) scalar(i int) (int, error) {
	switch l.text[i] {
	case '"':
		return l.str(i + 1)
	case 't':
		return l.literal(i, "true")
	case 'f':
		return l.literal(i, "false")
	case 'n':
		return l.literal(i, "null")
	default:
		return l.number(i)
	}
}

func (l *lexer) literal(i int, word string) (int, error) {
	if len(l.text)-i < len(word) || string(l.text[i:i+len(word)]) != word {
		return 0, l.unexpected(i, "a value")
	}
	return i + len(word), nil
}

// number checks the number at i. What follows it is the caller's business,
// so 01 fails at the 1.
func (l *lexer) number(i int) (int, error) {
	begin := i
	if l.text[i] == '-' {
		i++
	}
	if i < len(l.text) && l.text[i] == '0' {
		i++
	} else if next := l.digits(i); next > i {
		i = next
	} else if begin == i {
		return 0, l.unexpected(i, "a value")
	} else {
		return 0, l.unexpected(i, "a digit")
	}
	if i < len(l.text) && l.text[i] == '.' {
		next := l.digits(i + 1)
		if next == i+1 {
			return 0, l.unexpected(next, "a digit")
		}
		i = next
	}
	if i < len(l.text) && l.text[i]|0x20 == 'e' {
		i++
		if i < len(l.text) && (l.text[i] == '+' || l.text[i] == '-') {
			i++
		}
		next := l.digits(i)
		if next == i {
			return 0, l.unexpected(next, "a digit")
		}
		i = next
	}
	return i, nil
}

func (l *lexer) digits(i int) int {
	for i < len(l.text) && l.text[i]-'0' <= 9 {
		i++
	}
	return i
}
