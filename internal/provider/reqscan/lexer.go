package reqscan

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

// Errorf is a *SyntaxError with a message, formatted as by fmt.Sprintf.
func Errorf(format string, args ...any) error {
	return &SyntaxError{Message: fmt.Sprintf(format, args...)}
}

// jsonErrorf is an Errorf for a body that breaks the JSON grammar.
func jsonErrorf(format string, args ...any) error {
	return Errorf("request body is not valid JSON: "+format, args...)
}

// Lexer checks the JSON grammar of text and reports where values end. Every
// method takes and returns offsets in Text, which is what it is made with. The zero
// value has no text. It serves one goroutine.
type Lexer struct {
	Text []byte
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

// Space is the first offset from i on that holds no JSON white space.
func (l *Lexer) Space(i int) int {
	for i < len(l.Text) {
		switch l.Text[i] {
		case ' ', '\n', '\r', '\t':
			i++
		default:
			return i
		}
	}
	return i
}

// unexpected describes what stands at i instead of what the grammar wants.
func (l *Lexer) unexpected(i int, want string) error {
	if i >= len(l.Text) {
		return jsonErrorf("it ends where %s was expected", want)
	}
	return jsonErrorf("found %q where %s was expected at byte %d", l.Text[i:i+1], want, i)
}

// value checks the value that starts at i, white space before it skipped,
// inside depth open containers. It returns where the value starts and ends.
func (l *Lexer) value(i, depth int) (start, end int, err error) {
	i = l.Space(i)
	start = i
	base := depth
	for {
		i = l.Space(i)
		if i >= len(l.Text) {
			return 0, 0, l.unexpected(i, "a value")
		}
		c := l.Text[i]
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
func (l *Lexer) open(i, depth int) (next int, empty bool, err error) {
	word, bit := (depth-1)/64, uint64(1)<<((depth-1)%64)
	object := l.Text[i] == '{'
	i = l.Space(i + 1)
	if !object {
		l.objects[word] &^= bit
		return i, i < len(l.Text) && l.Text[i] == ']', nil
	}
	l.objects[word] |= bit
	if i < len(l.Text) && l.Text[i] == '}' {
		return i, true, nil
	}
	i, err = l.key(i)
	return i, false, err
}

// closeAll goes on after a value that ends at i: it leaves every container
// that closes there, down to depth base, and stops at the next value.
func (l *Lexer) closeAll(i, depth, base int) (next, newDepth int, err error) {
	for depth > base {
		i = l.Space(i)
		object := l.objects[(depth-1)/64]>>((depth-1)%64)&1 == 1
		if i < len(l.Text) && l.Text[i] == ',' {
			if object {
				i, err = l.key(l.Space(i + 1))
				return i, depth, err
			}
			return i + 1, depth, nil
		}
		want, text := byte(']'), ", or ]"
		if object {
			want, text = '}', ", or }"
		}
		if i >= len(l.Text) || l.Text[i] != want {
			return 0, 0, l.unexpected(i, text)
		}
		i++
		depth--
	}
	return i, depth, nil
}

// key checks a member name at i and the colon after it, and returns the
// offset of the member's value.
func (l *Lexer) key(i int) (int, error) {
	if i >= len(l.Text) || l.Text[i] != '"' {
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
func (l *Lexer) note(start, end int) {
	switch m := markOf(l.Text[start:end]); {
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
func (l *Lexer) colon(i int) (int, error) {
	if i < len(l.Text) && l.Text[i] != ':' {
		i = l.Space(i)
	}
	if i >= len(l.Text) || l.Text[i] != ':' {
		return 0, l.unexpected(i, "a colon")
	}
	return l.Space(i + 1), nil
}

// scalar checks the string, number or literal at i and returns its end.
func (l *Lexer) scalar(i int) (int, error) {
	switch l.Text[i] {
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

func (l *Lexer) literal(i int, word string) (int, error) {
	if len(l.Text)-i < len(word) || string(l.Text[i:i+len(word)]) != word {
		return 0, l.unexpected(i, "a value")
	}
	return i + len(word), nil
}

// number checks the number at i. What follows it is the caller's business,
// so 01 fails at the 1.
func (l *Lexer) number(i int) (int, error) {
	begin := i
	if l.Text[i] == '-' {
		i++
	}
	if i < len(l.Text) && l.Text[i] == '0' {
		i++
	} else if next := l.digits(i); next > i {
		i = next
	} else if begin == i {
		return 0, l.unexpected(i, "a value")
	} else {
		return 0, l.unexpected(i, "a digit")
	}
	if i < len(l.Text) && l.Text[i] == '.' {
		next := l.digits(i + 1)
		if next == i+1 {
			return 0, l.unexpected(next, "a digit")
		}
		i = next
	}
	if i < len(l.Text) && l.Text[i]|0x20 == 'e' {
		i++
		if i < len(l.Text) && (l.Text[i] == '+' || l.Text[i] == '-') {
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

func (l *Lexer) digits(i int) int {
	for i < len(l.Text) && l.Text[i]-'0' <= 9 {
		i++
	}
	return i
}
