//===- JoinObjects.cpp - several objects become one -----------------------===//
#include "codegen/JoinObjects.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/MC/StringTableBuilder.h"
#include "llvm/Object/ELF.h"
#include "llvm/Support/MathExtras.h"

#include <deque>

using namespace llvm;
using namespace llvm::ELF;
using namespace llvm::object;

namespace keratin {

namespace {

using File = ELFFile<ELF64LE>;
using SectionHeader = File::Elf_Shdr;
using SymbolEntry = File::Elf_Sym;
using RelocationEntry = File::Elf_Rela;

/// Bytes of an input, and where they begin in a section of the output.
struct Piece {
  ArrayRef<char> bytes;
  uint64_t offset;
};

/// Where a section or a symbol of an input is in the output: in a section, at
/// an offset, or a symbol of its own.
struct Place {
  bool isKept = false, isSymbol = false;
  uint32_t index = 0;
  uint64_t offset = 0;
};

struct OutputRelocation {
  uint64_t offset;
  uint32_t type;
  int64_t addend;
  std::optional<Place> target;
};

/// A section of the output that is no table.
struct OutputSection {
  StringRef name;
  uint32_t type = SHT_PROGBITS;
  uint64_t flags = 0, entrySize = 0, alignment = 1, size = 0;
  std::vector<Piece> pieces; // in order; none of SHT_NOBITS
  std::vector<OutputRelocation> relocations;
};

/// `section` is an index of `sections`, or a special number.
struct OutputSymbol {
  StringRef name;
  uint8_t binding = STB_GLOBAL, type = STT_NOTYPE, visibility = STV_DEFAULT;
  uint64_t value = 0, size = 0;
  uint32_t section = SHN_UNDEF;
  bool isSpecial = true;

  bool isDefined() const { return !isSpecial || section != SHN_UNDEF; }
  bool isLocal() const {
    return binding == STB_LOCAL ||
           (isDefined() &&
            (visibility == STV_HIDDEN || visibility == STV_INTERNAL));
  }
};

class Joiner {
public:
  explicit Joiner(raw_ostream &stream) : stream(stream) {}

  Error add(const ObjectPart &part);
  Error add(const DataSection &data);
  void write();

private:
  Error addSections(const File &file, std::vector<Place> &places);
  Error addSymbols(const File &file, const SectionHeader &table,
                   const ObjectPart::Rename &rename,
                   ArrayRef<Place> sectionPlaces, std::vector<Place> &places);
  Expected<uint32_t> addSymbol(const OutputSymbol &symbol);
  Error addRelocations(const File &file, const SectionHeader &table,
                       ArrayRef<Place> sectionPlaces,
                       ArrayRef<Place> symbolPlaces);
  uint32_t sectionLike(StringRef name, const SectionHeader &header);

  uint32_t orderSymbols();
  uint32_t numberOf(const Place &target) const;
  void writeSymbols(const StringTableBuilder &names);
  void writeRelocations(const OutputSection &section);
  void writeContents(const OutputSection &section);
  void padTo(uint64_t offset);
  void put(const void *data, size_t size);

  raw_ostream &stream;
  uint64_t position = 0; // in the file
  std::optional<File::Elf_Ehdr> header;
  std::vector<OutputSection> sections;
  MapVector<std::tuple<StringRef, uint32_t, uint64_t, uint64_t>, uint32_t>
      sectionIndices;
  std::vector<OutputSymbol> symbols;
  StringMap<uint32_t> globals;
  std::vector<uint32_t> order;   // symbols as they are written
  std::vector<uint32_t> numbers; // of symbols in the file
  /// Of sections and symbols, which refer to them.
  std::deque<std::string> ownNames;
};

} // namespace

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// Neither tables, which are made anew, nor hints for linkers are copied.
static Expected<bool> isCopied(const SectionHeader &header, StringRef name) {
  constexpr uint64_t unknownFlags =
      SHF_GROUP | SHF_LINK_ORDER | SHF_COMPRESSED | SHF_INFO_LINK;
  switch (header.sh_type) {
  case SHT_NULL:
  case SHT_SYMTAB:
  case SHT_STRTAB:
  case SHT_RELA:
  case SHT_LLVM_ADDRSIG:
    return false;
  case SHT_PROGBITS:
  case SHT_NOBITS:
  case SHT_X86_64_UNWIND:
    if (!(header.sh_flags & unknownFlags))
      return true;
    break;
  default:
    break;
  }
  return createStringError("an object with the section '" + name +
                           "' of type " + Twine(header.sh_type) +
                           " cannot be joined with others");
}

uint32_t Joiner::sectionLike(StringRef name, const SectionHeader &header) {
  auto [it, isNew] = sectionIndices.try_emplace(
      {name, header.sh_type, header.sh_flags, header.sh_entsize},
      sections.size());
  if (isNew) {
    OutputSection &section = sections.emplace_back();
    section.name = name;
    section.type = header.sh_type;
    section.flags = header.sh_flags;
    section.entrySize = header.sh_entsize;
  }
  return it->second;
}

Error Joiner::addSections(const File &file, std::vector<Place> &places) {
  Expected<File::Elf_Shdr_Range> headers = file.sections();
  if (!headers)
    return headers.takeError();
  for (const SectionHeader &header : *headers) {
    Expected<StringRef> name = file.getSectionName(header);
    if (!name)
      return name.takeError();
    Expected<bool> copied = isCopied(header, *name);
    if (!copied)
      return copied.takeError();
    Place &place = places.emplace_back();
    if (!*copied)
      continue;
    place.isKept = true;
    place.index = sectionLike(*name, header);
    OutputSection &section = sections[place.index];
    uint64_t alignment = std::max<uint64_t>(1, header.sh_addralign);
    place.offset = alignTo(section.size, alignment);
    section.alignment = std::max(section.alignment, alignment);
    section.size = place.offset + header.sh_size;
    if (header.sh_type == SHT_NOBITS)
      continue;
    Expected<ArrayRef<uint8_t>> bytes = file.getSectionContents(header);
    if (!bytes)
      return bytes.takeError();
    section.pieces.push_back(
        {ArrayRef(reinterpret_cast<const char *>(bytes->data()), bytes->size()),
         place.offset});
  }
  return Error::success();
}

/// Local symbols stay apart, others of one name are one.
Expected<uint32_t> Joiner::addSymbol(const OutputSymbol &symbol) {
  uint32_t index = symbols.size();
  if (symbol.binding != STB_LOCAL) {
    auto [it, isNew] = globals.try_emplace(symbol.name, index);
    if (!isNew) {
      OutputSymbol &known = symbols[it->second];
      if (symbol.isDefined() && known.isDefined())
        return createStringError("two objects to be joined define '" +
                                 symbol.name + "'");
      // Smaller numbers but default are the stricter ones.
      uint8_t visibility = std::max(symbol.visibility, known.visibility);
      if (symbol.visibility && known.visibility)
        visibility = std::min(symbol.visibility, known.visibility);
      if (symbol.isDefined())
        known = symbol;
      known.visibility = visibility;
      return it->second;
    }
  }
  symbols.push_back(symbol);
  return index;
}

Error Joiner::addSymbols(const File &file, const SectionHeader &table,
                         const ObjectPart::Rename &rename,
                         ArrayRef<Place> sectionPlaces,
                         std::vector<Place> &places) {
  Expected<File::Elf_Sym_Range> entries = file.symbols(&table);
  if (!entries)
    return entries.takeError();
  Expected<StringRef> names = file.getStringTableForSymtab(table);
  if (!names)
    return names.takeError();
  places.resize(entries->size());
  for (auto [index, entry] : enumerate(*entries)) {
    uint16_t section = entry.st_shndx;
    bool isSpecial = section == SHN_UNDEF || section >= SHN_LORESERVE;
    // One file is said to be what all code came from, or linkers would say the
    // name of the object, which may be a temporary one.
    if (index == 0 || (entry.getType() == STT_FILE && !symbols.empty()))
      continue;
    if (isSpecial && section != SHN_UNDEF && section != SHN_ABS)
      return createStringError("a symbol of an object to be joined is in the "
                               "special section " +
                               Twine(section));
    if (!isSpecial &&
        (section >= sectionPlaces.size() || !sectionPlaces[section].isKept))
      continue; // of a table
    Place &place = places[index];
    if (entry.getType() == STT_SECTION) {
      place = sectionPlaces[section];
      continue;
    }
    Expected<StringRef> name = entry.getName(*names);
    if (!name)
      return name.takeError();
    OutputSymbol symbol;
    symbol.name = *name;
    if (rename)
      symbol.name = ownNames.emplace_back(rename(*name));
    symbol.binding = entry.getBinding();
    symbol.type = entry.getType();
    symbol.visibility = entry.getVisibility();
    symbol.value = entry.st_value;
    symbol.size = entry.st_size;
    symbol.isSpecial = isSpecial;
    symbol.section = section;
    if (!isSpecial) {
      symbol.section = sectionPlaces[section].index;
      symbol.value += sectionPlaces[section].offset;
    }
    Expected<uint32_t> number = addSymbol(symbol);
    if (!number)
      return number.takeError();
    place.isKept = place.isSymbol = true;
    place.index = *number;
  }
  return Error::success();
}

Error Joiner::addRelocations(const File &file, const SectionHeader &table,
                             ArrayRef<Place> sectionPlaces,
                             ArrayRef<Place> symbolPlaces) {
  if (table.sh_info >= sectionPlaces.size() ||
      !sectionPlaces[table.sh_info].isKept)
    return Error::success();
  const Place &place = sectionPlaces[table.sh_info];
  Expected<File::Elf_Rela_Range> entries = file.relas(table);
  if (!entries)
    return entries.takeError();
  for (const RelocationEntry &entry : *entries) {
    OutputRelocation relocation;
    relocation.offset = entry.r_offset + place.offset;
    relocation.type = entry.getType(/*isMips64EL=*/false);
    relocation.addend = entry.r_addend;
    if (uint32_t symbol = entry.getSymbol(/*isMips64EL=*/false)) {
      if (symbol >= symbolPlaces.size() || !symbolPlaces[symbol].isKept)
        return createStringError("a relocation of an object to be joined names "
                                 "a symbol that is not there");
      relocation.target = symbolPlaces[symbol];
      if (!relocation.target->isSymbol)
        relocation.addend += relocation.target->offset;
    }
    sections[place.index].relocations.push_back(relocation);
  }
  return Error::success();
}

Error Joiner::add(const ObjectPart &part) {
  Expected<File> file = File::create(part.object.getBuffer());
  if (!file)
    return file.takeError();
  const File::Elf_Ehdr &own = file->getHeader();
  if (!header)
    header = own;
  if (own.e_type != ET_REL || own.e_ident[EI_CLASS] != ELFCLASS64 ||
      own.e_ident[EI_DATA] != ELFDATA2LSB ||
      own.e_machine != header->e_machine || own.e_flags != header->e_flags)
    return createStringError("objects to be joined are of different machines");
  std::vector<Place> sectionPlaces, symbolPlaces;
  if (Error error = addSections(*file, sectionPlaces))
    return error;
  File::Elf_Shdr_Range headers = cantFail(file->sections());
  for (const SectionHeader &table : headers)
    if (table.sh_type == SHT_SYMTAB)
      if (Error error = addSymbols(*file, table, part.rename, sectionPlaces,
                                   symbolPlaces))
        return error;
  for (const SectionHeader &table : headers)
    if (table.sh_type == SHT_RELA)
      if (Error error =
              addRelocations(*file, table, sectionPlaces, symbolPlaces))
        return error;
  return Error::success();
}

Error Joiner::add(const DataSection &data) {
  bool hasPlace = data.isLarge && header && header->e_machine == EM_X86_64;
  ownNames.push_back((hasPlace ? ".lrodata." : ".rodata.") + data.symbol);
  OutputSection section;
  section.name = ownNames.back();
  section.flags = SHF_ALLOC | (hasPlace ? uint64_t(SHF_X86_64_LARGE) : 0);
  section.alignment = data.alignment;
  section.size = data.bytes.size();
  section.pieces.push_back({data.bytes, 0});
  OutputSymbol symbol;
  symbol.name = data.symbol;
  symbol.type = STT_OBJECT;
  symbol.visibility = STV_HIDDEN;
  symbol.size = data.bytes.size();
  symbol.section = sections.size();
  symbol.isSpecial = false;
  sections.push_back(std::move(section));
  return addSymbol(symbol).takeError();
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

// The file: header, sections, their relocations, symbols, names, headers of
// sections. Sections are numbered in that order, from 1.

/// Local symbols first, as the format asks; how many they are, with those of
/// sections.
uint32_t Joiner::orderSymbols() {
  for (bool local : {true, false})
    for (auto [index, symbol] : enumerate(symbols))
      if (symbol.isLocal() == local)
        order.push_back(index);
  numbers.resize(symbols.size());
  uint32_t first = 1 + sections.size();
  for (auto [position, index] : enumerate(order))
    numbers[index] = first + position;
  return first + count_if(symbols, [](auto &s) { return s.isLocal(); });
}

uint32_t Joiner::numberOf(const Place &target) const {
  return target.isSymbol ? numbers[target.index] : 1 + target.index;
}

void Joiner::put(const void *data, size_t size) {
  stream.write(static_cast<const char *>(data), size);
  position += size;
}

void Joiner::padTo(uint64_t offset) {
  stream.write_zeros(offset - position);
  position = offset;
}

void Joiner::writeContents(const OutputSection &section) {
  uint64_t begin = position;
  // Between functions, what the code generators put there too.
  bool isCode = section.flags & SHF_EXECINSTR;
  for (const Piece &piece : section.pieces) {
    if (isCode && header->e_machine == EM_X86_64)
      for (; position < begin + piece.offset; ++position)
        stream << '\xcc';
    padTo(begin + piece.offset);
    put(piece.bytes.data(), piece.bytes.size());
  }
}

void Joiner::writeRelocations(const OutputSection &section) {
  for (const OutputRelocation &relocation : section.relocations) {
    RelocationEntry entry;
    entry.r_offset = relocation.offset;
    entry.r_addend = relocation.addend;
    uint32_t symbol = relocation.target ? numberOf(*relocation.target) : 0;
    entry.setSymbolAndType(symbol, relocation.type, /*IsMips64EL=*/false);
    put(&entry, sizeof entry);
  }
}

void Joiner::writeSymbols(const StringTableBuilder &names) {
  SymbolEntry entry;
  std::memset(&entry, 0, sizeof entry);
  put(&entry, sizeof entry);
  for (uint32_t index = 0; index < sections.size(); ++index) {
    std::memset(&entry, 0, sizeof entry);
    entry.setBindingAndType(STB_LOCAL, STT_SECTION);
    entry.st_shndx = 1 + index;
    put(&entry, sizeof entry);
  }
  for (uint32_t index : order) {
    const OutputSymbol &symbol = symbols[index];
    entry.st_name = names.getOffset(CachedHashStringRef(symbol.name));
    entry.setBindingAndType(
        symbol.isLocal() ? uint8_t(STB_LOCAL) : symbol.binding, symbol.type);
    entry.st_other = 0;
    entry.setVisibility(symbol.isLocal() ? uint8_t(STV_DEFAULT)
                                         : symbol.visibility);
    entry.st_shndx = symbol.isSpecial ? symbol.section : 1 + symbol.section;
    entry.st_value = symbol.value;
    entry.st_size = symbol.size;
    put(&entry, sizeof entry);
  }
}

void Joiner::write() {
  uint32_t locals = orderSymbols();
  StringTableBuilder names(StringTableBuilder::ELF),
      sectionNames(StringTableBuilder::ELF);
  for (const OutputSymbol &symbol : symbols)
    names.add(CachedHashStringRef(symbol.name));
  names.finalizeInOrder();
  std::vector<std::string> relocationNames;
  for (const OutputSection &section : sections)
    relocationNames.push_back((".rela" + section.name).str());
  for (auto [section, name] : zip_equal(sections, relocationNames)) {
    sectionNames.add(CachedHashStringRef(section.name));
    if (!section.relocations.empty())
      sectionNames.add(CachedHashStringRef(name));
  }
  for (StringRef name : {".symtab", ".strtab", ".shstrtab"})
    sectionNames.add(CachedHashStringRef(name));
  sectionNames.finalizeInOrder();

  // The headers of sections, which say where everything is.
  std::vector<SectionHeader> headers(1);
  std::memset(headers.data(), 0, sizeof(SectionHeader));
  uint64_t offset = sizeof(File::Elf_Ehdr);
  auto addHeader = [&](StringRef name, uint32_t type, uint64_t size,
                       uint64_t alignment, uint64_t entrySize) {
    SectionHeader &entry = headers.emplace_back();
    std::memset(&entry, 0, sizeof entry);
    offset = alignTo(offset, alignment);
    entry.sh_name = sectionNames.getOffset(CachedHashStringRef(name));
    entry.sh_type = type;
    entry.sh_offset = offset;
    entry.sh_size = size;
    entry.sh_addralign = alignment;
    entry.sh_entsize = entrySize;
    if (type != SHT_NOBITS)
      offset += size;
    return &entry;
  };
  for (const OutputSection &section : sections)
    addHeader(section.name, section.type, section.size, section.alignment,
              section.entrySize)
        ->sh_flags = section.flags;
  uint32_t tables = 1 + sections.size() +
                    count_if(sections, [](const OutputSection &section) {
                      return !section.relocations.empty();
                    });
  for (auto [index, section] : enumerate(sections))
    if (!section.relocations.empty()) {
      SectionHeader *entry =
          addHeader(relocationNames[index], SHT_RELA,
                    section.relocations.size() * sizeof(RelocationEntry), 8,
                    sizeof(RelocationEntry));
      entry->sh_flags = SHF_INFO_LINK;
      entry->sh_link = tables;
      entry->sh_info = 1 + index;
    }
  SectionHeader *symbolTable =
      addHeader(".symtab", SHT_SYMTAB,
                (1 + sections.size() + symbols.size()) * sizeof(SymbolEntry), 8,
                sizeof(SymbolEntry));
  symbolTable->sh_link = tables + 1;
  symbolTable->sh_info = locals;
  addHeader(".strtab", SHT_STRTAB, names.getSize(), 1, 0);
  addHeader(".shstrtab", SHT_STRTAB, sectionNames.getSize(), 1, 0);

  File::Elf_Ehdr start = *header;
  start.e_shoff = alignTo(offset, 8);
  start.e_shnum = headers.size();
  start.e_shstrndx = headers.size() - 1;
  put(&start, sizeof start);
  for (auto [index, section] : enumerate(sections))
    if (section.type != SHT_NOBITS) {
      padTo(headers[1 + index].sh_offset);
      writeContents(section);
    }
  for (const OutputSection &section : sections)
    if (!section.relocations.empty()) {
      padTo(alignTo(position, 8));
      writeRelocations(section);
    }
  padTo(alignTo(position, 8));
  writeSymbols(names);
  for (const StringTableBuilder *table : {&names, &sectionNames}) {
    table->write(stream);
    position += table->getSize();
  }
  padTo(start.e_shoff);
  put(headers.data(), headers.size() * sizeof(SectionHeader));
}

Error joinObjects(ArrayRef<ObjectPart> objects, ArrayRef<DataSection> data,
                  raw_ostream &stream) {
  Joiner joiner(stream);
  for (const ObjectPart &part : objects)
    if (Error error = joiner.add(part))
      return error;
  for (const DataSection &section : data)
    if (Error error = joiner.add(section))
      return error;
  joiner.write();
  return Error::success();
}

} // namespace keratin
