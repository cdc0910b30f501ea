package address

import (
	"strings"
	"unicode"
)

// latinLookalikes are Latin letters that most fonts draw like one ASCII
// character: without a dot or a serif, from the phonetic alphabet, small
// capitals, clicks.
const latinLookalikes = "ıɩɪƖꞁǀǁǂǃɑⱭɡƍᴀʙᴄᴅᴇꜰɢʜᴊᴋʟᴍɴᴏᴑᴘꞯʀꜱᴛᴜᴠᴡʏᴢƽƼʋƲɯƜɣƔƅƄƨƧʒƷȝȜȣȢꝯꝮƿɂʔʕ"

// otherLookalikes are letters of other scripts that look like one ASCII
// character. Each is a good letter of its language; a local part that has no
// other letters cannot be told from one in ASCII.
const otherLookalikes = "" +
	"аеѕіїјһорсхуүґгԁԛԝѡѵӏьбзчԍ" + "АВЕЅІЇЈКМНОРСТХУҮѴԚԜԌӀҺЬЗБЧГ" + // Cyrillic
	"αικνορυγσςτωηχϳ" + "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧͿ" + // Greek
	"օսոհցզգյաղքւ" + "ՍՕՏԼՈԶԱ" + // Armenian
	"סוןח" + "اهہھە" + "ჿყ" + "ဝ" + "ഠടഗ" + "ଠ" + "ಠ" + "一ー丨ノ丿丶"

// looksASCII tells whether a text, or a letter of it among ASCII ones, looks
// like ASCII.
func looksASCII(s string) bool {
	if strings.ContainsAny(s, latinLookalikes) {
		return true
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return unicode.Is(unicode.L, r) && !strings.ContainsRune(otherLookalikes, r)
	})
}
